#include "base/file_aside.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace lockstep {

FileAside::FileAside(const fs::path& path) : path_(path), temporary_(path) {
  temporary_ += ".tmp";
  file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) fail("created", errno);
}

FileAside::~FileAside() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(temporary_.c_str());
}

void FileAside::fail(const char* what, int cause) const {
  throw MachineError("{}: cannot be {}: {}", path_.string(), what, std::strerror(cause));
}

void FileAside::take_place() {
  if (::fsync(file_) != 0) fail("written", errno);
  const bool closed = ::close(std::exchange(file_, -1)) == 0;
  if (closed && ::rename(temporary_.c_str(), path_.c_str()) == 0) return;
  const int cause = errno;
  ::unlink(temporary_.c_str());
  fail(closed ? "renamed into place" : "written", cause);
}

}  // namespace lockstep
