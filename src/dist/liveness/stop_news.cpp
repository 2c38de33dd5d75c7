#include "dist/liveness/stop_news.h"

#include <algorithm>

namespace lockstep {

bool StopNews::here() const {
  const std::atomic<int>* signal = signal_.load(std::memory_order_acquire);
  return signal != nullptr && signal->load(std::memory_order_relaxed) != 0;
}

void StopNews::passed(int64_t step) {
  std::scoped_lock lock(mutex_);
  first_ = std::max(first_, step + 1);
}

bool StopNews::ends_at(int64_t step) {
  std::unique_lock lock(mutex_);
  if (held_) changed_.wait(lock, [this] { return step_ || released_; });
  if (step_ && step >= *step_) return true;
  first_ = std::max(first_, step + 1);
  return false;
}

int64_t StopNews::hold() {
  std::scoped_lock lock(mutex_);
  asked_ = true;
  held_ = true;
  return first_;
}

void StopNews::announce(int64_t step) {
  {
    std::scoped_lock lock(mutex_);
    if (!step_) step_ = step;
  }
  changed_.notify_all();
}

void StopNews::release() {
  {
    std::scoped_lock lock(mutex_);
    released_ = true;
  }
  changed_.notify_all();
}

}  // namespace lockstep
