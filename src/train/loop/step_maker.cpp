#include "train/loop/step_maker.h"

#include <unistd.h>

#include <numeric>
#include <utility>

#include "dist/account/progress.h"

namespace lockstep {

void Leave::take() {
  std::scoped_lock lock(mutex_);
  taken_ = true;
}

std::unique_lock<std::mutex> Leave::stay() {
  std::unique_lock lock(mutex_);
  if (!taken_) return lock;
  lock.unlock();
  for (;;) ::pause();  // until the process ends
}

StepMaker::StepMaker(Task& task, World& world, const RunPosition& position,
                     const ShareTimeline& shares, std::shared_ptr<Leave> leave, bool neighbours)
    : task_(task),
      world_(world),
      shares_(shares),
      epoch_(position.epoch),
      step_in_epoch_(position.step_in_epoch),
      leave_(std::move(leave)),
      neighbours_(neighbours) {}

std::vector<int64_t> StepMaker::own_parts(const StepParts& parts) const {
  if (!neighbours_) return parts.of_rank(world_.rank());
  std::vector<int64_t> out(static_cast<std::size_t>(parts.count() / world_.size()));
  std::iota(out.begin(), out.end(), std::ssize(out) * world_.rank());
  return out;
}

StepBatch StepMaker::next() {
  const auto begin = StepAccount::Clock::now();
  if (step_in_epoch_ == task_.steps_in_epoch(epoch_)) {
    ++epoch_;
    step_in_epoch_ = 0;
  }
  const int64_t steps = task_.steps_in_epoch(epoch_);
  StepBatch out{.epoch = epoch_,
                .step_in_epoch = step_in_epoch_,
                .steps_in_epoch = steps,
                .targets = task_.targets_in_step(epoch_, step_in_epoch_),
                .ends_epoch = step_in_epoch_ + 1 == steps};
  std::unique_lock<std::mutex> staying = leave_->stay();
  const StepParts parts(shares_.at({epoch_, step_in_epoch_}));
  const std::vector<int64_t> mine = own_parts(parts);
  staying.unlock();
  out.uploads = uploads_.collect(task_.parameters().values().device(), [&] {
    for (int64_t part : mine) {
      auto batch = task_.make_batch({epoch_, step_in_epoch_, part, parts});
      leave_->stay();
      if (!batch) continue;
      batch->part = part;
      out.micro_batches.push_back(std::move(batch));
    }
  });
  ++step_in_epoch_;
  staying = leave_->stay();
  world_.progress().account().background("batch", begin, StepAccount::Clock::now());
  return out;
}

}  // namespace lockstep
