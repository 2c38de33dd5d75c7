// Lets one thread wait for many descriptors, and calls each one's function when it is ready.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

namespace lockstep {

using Clock = std::chrono::steady_clock;

// Returns the earlier of two optional deadlines.
inline std::optional<Clock::time_point> earlier(std::optional<Clock::time_point> a,
                                                std::optional<Clock::time_point> b) {
  if (!a || !b) return a ? a : b;
  return *a < *b ? a : b;
}

class EventLoop {
 public:
  using Ready = std::function<void()>;

  // Calls `ready` whenever one of `events` (POLLIN, POLLOUT) or a hang-up occurs; replaces an
  // earlier watch of this descriptor. The descriptor is borrowed: forget it before it is closed.
  void watch(int descriptor, short events, Ready ready);
  void forget(int descriptor);

  // Waits until something is ready or `until` has passed, and calls what is ready.
  void wait(std::optional<Clock::time_point> until);

 private:
  struct Watched {
    short events = 0;
    std::shared_ptr<Ready> ready;  // shared: it may forget itself while it runs
  };
  std::map<int, Watched> watched_;
};

}  // namespace lockstep
