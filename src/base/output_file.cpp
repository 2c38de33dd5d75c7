#include "base/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace lockstep {

namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 18;

// Calls write(data, size), which does as write(2) does, until all is written; returns errno, or 0.
template <typename Write>
int write_all(const char* data, std::size_t size, const Write& write) {
  while (size > 0) {
    const ssize_t done = write(data, size);
    if (done < 0 && errno != EINTR) return errno;
    if (done <= 0) continue;
    data += done;
    size -= static_cast<std::size_t>(done);
  }
  return 0;
}

}  // namespace

void OutputFile::write(const void* data, std::size_t size) {
  if (waiting_.size() + size > kBuffer) flush();
  if (size > kBuffer) {
    put(static_cast<const char*>(data), size);
  } else {
    waiting_.append(static_cast<const char*>(data), size);
  }
}

void OutputFile::flush() {
  put(waiting_.data(), waiting_.size());
  waiting_.clear();
}

void OutputFile::put(const char* data, std::size_t size) {
  const int failed = write_all(data, size, [&](const char* from, std::size_t left) {
    return ::write(file_.descriptor(), from, left);
  });
  if (failed != 0) file_.fail("written", failed);
}

void OutputFile::rewrite(int64_t offset, const void* data, std::size_t size) {
  flush();
  const int failed =
      write_all(static_cast<const char*>(data), size, [&](const char* from, std::size_t left) {
        const ssize_t done = ::pwrite(file_.descriptor(), from, left, offset);
        if (done > 0) offset += done;
        return done;
      });
  if (failed != 0) file_.fail("written", failed);
}

void OutputFile::finish() {
  flush();
  file_.take_place();
}

MachineError write_failure(const fs::path& path, int cause) {
  MachineError error("{}: cannot be written: {}", path.string(), std::strerror(cause));
  std::error_code none;
  const fs::path place = fs::temp_directory_path(none);
  const bool full = cause == ENOSPC || cause == EDQUOT;
  if (full && !none && path.string().starts_with((place / "lockstep-").string())) {
    error.set_advice("TMPDIR=FOLDER, where there is more room for what is kept for a while");
  }
  return error;
}

}  // namespace lockstep
