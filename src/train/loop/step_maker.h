// Prepares this rank's share of each step ahead of its use.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "dist/collectives/world.h"
#include "nn/upload.h"
#include "tasks/task.h"
#include "train/folder/run_position.h"
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

// Where a run ends while its prefetch thread waits for a disk, which nothing can end.
class Leave {
 public:
  // From here on the thread touches nothing but the task, which may wait for the disk.
  void take();

  // Called on the thread: returns a lock under which nobody leaves; never once somebody has.
  std::unique_lock<std::mutex> stay();

 private:
  std::mutex mutex_;
  bool taken_ = false;
};

class StepMaker {
 public:
  // The first step made is the one after `position`. Steps are split as `shares` says, among which
  // those of `world` take theirs. `task`, `world` and `shares` must outlive this, or until `leave`
  // is taken, the last two. With `neighbours` a rank takes parts that follow each other; all ranks
  // have as many.
  StepMaker(Task& task, World& world, const RunPosition& position, const ShareTimeline& shares,
            std::shared_ptr<Leave> leave = std::make_shared<Leave>(), bool neighbours = false);

  // Called on the prefetch thread. Throws what Task::make_batch() throws.
  StepBatch next();

 private:
  std::vector<int64_t> own_parts(const StepParts& parts) const;

  Task& task_;
  World& world_;
  const ShareTimeline& shares_;
  int64_t epoch_, step_in_epoch_;  // of the step that next() makes
  std::shared_ptr<Leave> leave_;
  bool neighbours_;
  UploadStream uploads_;
};

}  // namespace lockstep
