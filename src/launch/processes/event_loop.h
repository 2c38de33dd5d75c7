// One thread that waits for many descriptors: each has a function that is called when it is ready.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

namespace lockstep {

using Clock = std::chrono::steady_clock;

// The earlier of two deadlines that may be none.
inline std::optional<Clock::time_point> earlier(std::optional<Clock::time_point> a,
                                                std::optional<Clock::time_point> b) {
  if (!a || !b) return a ? a : b;
  return *a < *b ? a : b;
}

class EventLoop {
 public:
  using Ready = std::function<void()>;

  // Calls `ready` whenever one of `events` (POLLIN, POLLOUT) or the other end's end is there; takes
  // the place of what was said of this descriptor before. Borrows it: forget it before it closes.
  void watch(int descriptor, short events, Ready ready);
  void forget(int descriptor);

  // Waits for something to be ready, until `until` at the longest, and calls what is.
  void wait(std::optional<Clock::time_point> until);

 private:
  struct Watched {
    short events = 0;
    std::shared_ptr<Ready> ready;  // shared: it may forget itself while it runs
  };
  std::map<int, Watched> watched_;
};

}  // namespace lockstep
