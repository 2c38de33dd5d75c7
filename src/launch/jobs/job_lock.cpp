#include "launch/jobs/job_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/file.h"

namespace lockstep {

namespace {

struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

std::optional<Descriptor> take_job_lock(const fs::path& file, int term) {
  Descriptor out(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!out.open()) throw MachineError("{}: {}", file.string(), std::strerror(errno));
  struct flock lock = whole_file();
  if (::fcntl(out.get(), F_OFD_SETLK, &lock) != 0) {
    if (errno == EAGAIN || errno == EACCES) return std::nullopt;
    throw MachineError("{}: cannot be locked: {}", file.string(), std::strerror(errno));
  }
  const std::string holder = fmt::format("{} {}\n", ::getpid(), term);
  if (::ftruncate(out.get(), 0) != 0 || !write_all(out.get(), holder)) {
    throw MachineError("{}: cannot be written: {}", file.string(), std::strerror(errno));
  }
  return out;
}

std::optional<JobLockHolder> job_lock_holder(const fs::path& file) {
  Descriptor opened(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  if (!opened.open()) return std::nullopt;
  struct flock lock = whole_file();
  if (::fcntl(opened.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) {
    return std::nullopt;
  }
  JobLockHolder out;
  std::sscanf(read_file(file).c_str(), "%d %d", &out.process, &out.term);
  return out;
}

bool end_older_holder(const fs::path& file, int term) {
  constexpr int kTries = 500;
  constexpr std::chrono::milliseconds kPause{10};
  for (int i = 0; i < kTries; ++i) {
    const std::optional<JobLockHolder> holder = job_lock_holder(file);
    if (!holder) return true;
    // What the file says may be half written for a moment after the lock is taken.
    if (holder->term >= term) return false;
    if (holder->process > 1 && holder->term > 0) ::kill(holder->process, SIGKILL);
    std::this_thread::sleep_for(kPause);
  }
  return false;
}

}  // namespace lockstep
