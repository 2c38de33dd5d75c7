#include "base/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/error.h"

namespace lockstep {

OutputFile::OutputFile(const fs::path& path) : path_(path), temporary_(path) {
  temporary_ += ".tmp";
  file_ = std::fopen(temporary_.c_str(), "wbe");
  if (file_ == nullptr) fail("created");
  std::setvbuf(file_, nullptr, _IOFBF, 1 << 18);
}

OutputFile::~OutputFile() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  ::unlink(temporary_.c_str());
}

void OutputFile::fail(const char* what) {
  std::string reason = std::strerror(errno);
  throw MachineError("{}: cannot be {}: {}", path_.string(), what, reason);
}

void OutputFile::write(const void* data, std::size_t size) {
  if (size > 0 && std::fwrite(data, 1, size, file_) != size) fail("written");
}

void OutputFile::rewrite(int64_t offset, const void* data, std::size_t size) {
  if (std::fseek(file_, offset, SEEK_SET) != 0) fail("written");
  write(data, size);
  if (std::fseek(file_, 0, SEEK_END) != 0) fail("written");
}

void OutputFile::finish() {
  if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0) fail("written");
  if (std::fclose(file_) != 0) {
    const int cause = errno;
    file_ = nullptr;
    ::unlink(temporary_.c_str());
    errno = cause;
    fail("written");
  }
  file_ = nullptr;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int cause = errno;
    ::unlink(temporary_.c_str());
    errno = cause;
    fail("renamed into place");
  }
}

}  // namespace lockstep
