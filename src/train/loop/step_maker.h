// Prepares this rank's share of each step ahead of its use.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "dist/collectives/world.h"
#include "nn/upload.h"
#include "tasks/task.h"
#include "train/checkpoint/run_position.h"
#include "train/parts/share_timeline.h"

namespace lockstep {

// This rank's share of a step.
struct StepBatch {
  int64_t epoch = 0, step_in_epoch = 0, steps_in_epoch = 0;
  int64_t targets = 0;                                // of the whole step, over all ranks
  bool ends_epoch = false;                            // the step is the last of its epoch
  std::vector<std::unique_ptr<Batch>> micro_batches;  // of this rank, without empty ones
  Uploads uploads;                                    // of these, to be awaited before their use
};

class StepMaker {
 public:
  // The first step made is the one after `position`. Steps are split as `shares` says, among which
  // those of `world` take theirs. `task`, `world` and `shares` must outlive this.
  // Once `left` is true, next() returns no more and touches nothing: its thread outlives them.
  // With `neighbours` a rank takes parts that follow each other; all ranks have as many.
  StepMaker(Task& task, World& world, const RunPosition& position, const ShareTimeline& shares,
            std::shared_ptr<const std::atomic<bool>> left = nullptr, bool neighbours = false);

  // Called on the prefetch thread. Throws what Task::make_batch() throws.
  StepBatch next();

 private:
  std::vector<int64_t> own_parts(const StepParts& parts) const;

  Task& task_;
  World& world_;
  const ShareTimeline& shares_;
  int64_t epoch_, step_in_epoch_;  // of the step that next() makes
  std::shared_ptr<const std::atomic<bool>> left_;
  bool neighbours_;
  UploadStream uploads_;
};

}  // namespace lockstep
