#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>

namespace lockstep {

FileLock::FileLock(const std::filesystem::path& path)
    : path_(path), file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  if (!file_.open()) {
    throw MachineError("{}: cannot be opened: {}", path.string(), std::strerror(errno));
  }
}

bool FileLock::try_lock() {
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  throw NoLocks("{}: cannot be locked: {}", path_.string(), std::strerror(errno));
}

void FileLock::lock() {
  int failed = 0;
  while ((failed = ::flock(file_.get(), LOCK_EX)) != 0 && errno == EINTR) {
  }
  if (failed == 0) return;
  throw NoLocks("{}: cannot be locked: {}", path_.string(), std::strerror(errno));
}

void FileLock::unlock() { ::flock(file_.get(), LOCK_UN); }

}  // namespace lockstep
