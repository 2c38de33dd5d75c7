// Preloaded, makes the machine of a process unsteady: its clock jumps, for all calls that tell the
// time of day, while the monotonic clock goes on; its disk is slow. Waits until a time of day are
// the kernel's, whose clock does not jump: they take longer, or end at once (in Gloo).
//
// The file LOCKSTEP_UNSTEADY, without that /etc/lockstep-unsteady, says how, in at most 32 bytes:
// "SECONDS MILLISECONDS", how far the time of day is ahead and what each change of a file waits
// for. It may be written over in place at any time; processes that began before it was there do not
// see it. LOCKSTEP_CLOCK_JUMPS="WHO:SECONDS,..." is for one process, a second after it began: WHO
// is a rank, or "launcher" for a process that is none.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <string>

namespace {

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

using ReadClock = int (*)(clockid_t, struct timespec*);
ReadClock real_clock() {
  static const auto function = next<ReadClock>("clock_gettime");
  return function;
}

double monotonic() {
  timespec now{};
  real_clock()(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

const double kBegan = monotonic();

constexpr std::size_t kStateBytes = 32;

const char* map_state() {
  const char* path = ::getenv("LOCKSTEP_UNSTEADY");
  const int fd = ::open(path == nullptr ? "/etc/lockstep-unsteady" : path, O_RDONLY | O_CLOEXEC);
  struct stat size {};
  void* memory = MAP_FAILED;
  if (fd >= 0 && ::fstat(fd, &size) == 0 && size.st_size >= static_cast<off_t>(kStateBytes)) {
    memory = ::mmap(nullptr, kStateBytes, PROT_READ, MAP_SHARED, fd, 0);
  }
  if (fd >= 0) ::close(fd);
  return memory == MAP_FAILED ? nullptr : static_cast<const char*>(memory);
}

struct State {
  long clock_seconds = 0, disk_milliseconds = 0;
};
State state() {
  static const char* const text = map_state();
  if (text == nullptr) return {};
  char copy[kStateBytes + 1] = "";
  ::memcpy(copy, text, kStateBytes);
  char* rest = nullptr;
  State out;
  out.clock_seconds = ::strtol(copy, &rest, 10);
  out.disk_milliseconds = ::strtol(rest, nullptr, 10);
  return out;
}

long jump_of_this_process() {
  const char* jumps = ::getenv("LOCKSTEP_CLOCK_JUMPS");
  const char* rank = ::getenv("LOCKSTEP_RANK");
  if (jumps == nullptr) return 0;
  const std::string who = std::string(",") + (rank == nullptr ? "launcher" : rank) + ":";
  const std::string all = std::string(",") + jumps;
  const std::size_t at = all.find(who);
  return at == std::string::npos ? 0 : ::atol(all.c_str() + at + who.size());
}

long seconds_ahead() {
  static const long seconds = jump_of_this_process();
  return state().clock_seconds + (monotonic() - kBegan > 1 ? seconds : 0);
}

void wait_for_disk() {
  const long milliseconds = state().disk_milliseconds;
  if (milliseconds > 0) ::usleep(static_cast<useconds_t>(milliseconds) * 1000);
}
void wait_for_disk_of(int fd) {
  struct stat what {};
  if (state().disk_milliseconds > 0 && ::fstat(fd, &what) == 0 && S_ISREG(what.st_mode)) {
    wait_for_disk();
  }
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, struct timespec* now) noexcept {
  const int result = real_clock()(clock, now);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += seconds_ahead();
  return result;
}

int gettimeofday(struct timeval* now, void*) noexcept {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  now->tv_sec = time.tv_sec;
  now->tv_usec = time.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* out) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}

ssize_t write(int fd, const void* data, size_t size) {
  wait_for_disk_of(fd);
  return next<ssize_t (*)(int, const void*, size_t)>("write")(fd, data, size);
}

ssize_t writev(int fd, const struct iovec* parts, int count) {
  wait_for_disk_of(fd);
  return next<ssize_t (*)(int, const struct iovec*, int)>("writev")(fd, parts, count);
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  wait_for_disk_of(fd);
  return next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite")(fd, data, size, offset);
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  return pwrite(fd, data, size, offset);
}

int fsync(int fd) {
  wait_for_disk();
  return next<int (*)(int)>("fsync")(fd);
}

int fdatasync(int fd) {
  wait_for_disk();
  return next<int (*)(int)>("fdatasync")(fd);
}

int rename(const char* from, const char* to) noexcept {
  wait_for_disk();
  return next<int (*)(const char*, const char*)>("rename")(from, to);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  wait_for_disk();
  return next<int (*)(int, const char*, int, const char*, unsigned)>("renameat2")(
      from_folder, from, to_folder, to, flags);
}

int unlink(const char* path) noexcept {
  wait_for_disk();
  return next<int (*)(const char*)>("unlink")(path);
}

}  // extern "C"
