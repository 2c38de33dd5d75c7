#include "train/loop/step_maker.h"

#include <unistd.h>

#include <utility>

#include "dist/account/progress.h"

namespace lockstep {

StepMaker::StepMaker(Task& task, World& world, const RunPosition& position,
                     const ShareTimeline& shares, std::shared_ptr<const std::atomic<bool>> left)
    : task_(task),
      world_(world),
      shares_(shares),
      epoch_(position.epoch),
      step_in_epoch_(position.step_in_epoch),
      left_(std::move(left)) {}

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
  const StepParts parts(shares_.at({epoch_, step_in_epoch_}));
  for (int64_t part : parts.of_rank(world_.rank())) {
    auto batch = task_.make_batch({epoch_, step_in_epoch_, part, parts});
    while (left_ && left_->load()) ::pause();  // until the process ends
    if (batch) out.micro_batches.push_back(std::move(batch));
  }
  ++step_in_epoch_;
  world_.progress().account().background("batch", begin, StepAccount::Clock::now());
  return out;
}

}  // namespace lockstep
