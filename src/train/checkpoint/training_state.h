// Holds the state of a run's training on one rank: all that a step changes and a checkpoint holds.
// A step (train/loop/train_step.h) advances it; collect() and restore() are the only way to a
// checkpoint and back.
#pragma once

#include <cstdint>

#include "dist/collectives/world.h"
#include "dist/gradients/comm_hooks.h"
#include "dist/gradients/gradient_reducer.h"
#include "tasks/task.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_sharing.h"
#include "train/config/run_config.h"
#include "train/parts/bucket_clock.h"
#include "train/parts/frozen_weights.h"
#include "train/parts/local_steps.h"
#include "train/parts/replicas.h"
#include "train/parts/running_statistics.h"
#include "train/parts/step_guard.h"
#include "train/parts/weight_histograms.h"
#include "train/parts/weight_update.h"

namespace lockstep {

class TrainingState {
 public:
  // Starts from the present weights of `task`, which must be open. The arguments must outlive this;
  // `clock`, if given, is told of every gradient bucket. Collective.
  TrainingState(const RunConfig& config, Task& task, World& world, const Numerics& numerics,
                BucketClock* clock = nullptr);
  TrainingState(const TrainingState&) = delete;
  TrainingState& operator=(const TrainingState&) = delete;

  // Returns what a checkpoint must hold, of all ranks on those that keep checkpoints. It shares
  // memory with this: it is to be saved, or copied, before the next step. REQUIRES equal weights on
  // all ranks. Collective.
  CheckpointContent collect(bool keeps);

  // Continues from a checkpoint, bit by bit as if the run had never stopped. Collective. Throws
  // DataError for a damaged checkpoint or one of another network.
  void restore(const SharedCheckpoint& checkpoint);

  // Returns what all ranks hold alike after a step that they took together.
  std::vector<Replica> replicas();

  const RunConfig& config;
  Task& task;
  World& world;

  RunPosition position;     // after the steps taken so far
  bool epoch_done = false;  // position is at the end of its epoch
  int64_t total_steps = 0;  // of the run, for the schedule; estimated from epochs
  RunningStatistics statistics;
  FrozenWeights frozen;
  WeightUpdate update;
  StepGuard guard;
  ReachHook hook;
  GradientReducer reducer;
  LocalSteps local;
  int64_t tensor_limit_bytes = 0;          // of forward and backward passes on the CPU; 0: none
  WeightHistograms* histograms = nullptr;  // takes gradients of due steps; null but on rank 0

 private:
  CheckpointContent content();
};

}  // namespace lockstep
