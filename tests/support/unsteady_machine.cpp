// Preloaded, lets the system's clock jump: LOCKSTEP_CLOCK_JUMPS="WHO:SECONDS,..." with WHO a rank,
// or "launcher" for a process that is none; a second after the process began, for all calls that
// tell the time of day. The monotonic clock goes on.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include <string>

namespace {

using ReadClock = int (*)(clockid_t, struct timespec*);

ReadClock real() {
  static const auto function = reinterpret_cast<ReadClock>(::dlsym(RTLD_NEXT, "clock_gettime"));
  return function;
}

double monotonic() {
  timespec now{};
  real()(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

const double began = monotonic();

long jump_of_this_process() {
  const char* jumps = ::getenv("LOCKSTEP_CLOCK_JUMPS");
  const char* rank = ::getenv("LOCKSTEP_RANK");
  if (jumps == nullptr) return 0;
  const std::string who = std::string(",") + (rank == nullptr ? "launcher" : rank) + ":";
  const std::string all = std::string(",") + jumps;
  const std::size_t at = all.find(who);
  return at == std::string::npos ? 0 : ::atol(all.c_str() + at + who.size());
}

long jump() {
  static const long seconds = jump_of_this_process();
  return monotonic() - began > 1 ? seconds : 0;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, struct timespec* now) noexcept {
  const int result = real()(clock, now);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += jump();
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

}  // extern "C"
