#include "launch/processes/event_loop.h"

#include <poll.h>

#include <algorithm>
#include <vector>

namespace lockstep {

void EventLoop::watch(int descriptor, short events, Ready ready) {
  watched_[descriptor] = {events, std::make_shared<Ready>(std::move(ready))};
}

void EventLoop::forget(int descriptor) { watched_.erase(descriptor); }

void EventLoop::wait(std::optional<Clock::time_point> until) {
  using std::chrono::milliseconds;
  int longest = -1;
  if (until) {
    auto left = std::chrono::ceil<milliseconds>(*until - Clock::now()).count();
    longest = static_cast<int>(std::clamp<int64_t>(left, 0, 3'600'000));
  }
  std::vector<pollfd> waits;
  std::vector<std::weak_ptr<Ready>> calls;  // expired when an earlier call forgot it
  for (const auto& [descriptor, watched] : watched_) {
    waits.push_back({descriptor, watched.events, 0});
    calls.push_back(watched.ready);
  }
  if (::poll(waits.data(), waits.size(), longest) <= 0) return;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    if (waits[i].revents == 0) continue;
    if (std::shared_ptr<Ready> call = calls[i].lock()) (*call)();
  }
}

}  // namespace lockstep
