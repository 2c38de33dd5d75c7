#include "train/parts/bucket_clock.h"

#include <utility>

namespace lockstep {
namespace {

class TimedHook final : public CommHook {
 public:
  TimedHook(std::unique_ptr<CommHook> next, BucketClock& clock)
      : next_(std::move(next)), clock_(clock) {}

  Completion start(const GradientBucket& bucket) override {
    if (bucket.index == 0) clock_.buckets.clear();  // a new or repeated step
    clock_.buckets.push_back({static_cast<int64_t>(bucket.gradients.nbytes()),
                              std::chrono::steady_clock::now(),
                              clock_.account != nullptr ? clock_.account->device_mark() : nullptr});
    return next_->start(bucket);
  }
  std::vector<HookArray> state() override { return next_->state(); }
  void restored() override { next_->restored(); }

 private:
  std::unique_ptr<CommHook> next_;
  BucketClock& clock_;
};

}  // namespace

std::unique_ptr<CommHook> time_buckets(std::unique_ptr<CommHook> next, BucketClock& clock) {
  return std::make_unique<TimedHook>(std::move(next), clock);
}

}  // namespace lockstep
