// One optimizer step over all ranks: the page that says what training is.
#pragma once

#include <memory>
#include <vector>

#include "dist/gradients/gradient_reducer.h"
#include "train/config/run_config.h"
#include "train/parts/frozen_weights.h"
#include "train/parts/local_steps.h"
#include "train/parts/running_statistics.h"
#include "train/parts/step_guard.h"
#include "train/parts/weight_histograms.h"
#include "train/parts/weight_update.h"
#include "train/records/observers.h"

namespace lockstep {

// This rank's share of a step, made ahead of time.
struct StepBatch {
  int64_t epoch = 0, step_in_epoch = 0, steps_in_epoch = 0;
  int64_t targets = 0;                                // of the whole step, over all ranks
  bool ends_epoch = false;                            // it is the last of its epoch
  std::vector<std::unique_ptr<Batch>> micro_batches;  // of this rank, empty ones left out
};

// What a step works on; all outlive it.
struct Engine {
  Task& task;
  World& world;
  GradientReducer& reducer;
  WeightUpdate& update;
  FrozenWeights& frozen;
  StepGuard& guard;
  LocalSteps& local;
  RunningStatistics& statistics;
  const RunConfig& config;
  int64_t total_steps;                     // of the run, for the schedule
  WeightHistograms* histograms = nullptr;  // takes the gradients of its steps
};

struct StepOutcome {
  // False: fp16 gradients overflowed, or a group of local steps had no target; the batch is lost.
  bool updated = true;
  // False: the step is still due. A local step that was lost is taken: all groups count alike.
  bool counts = true;
  StepRecord record;  // of an updated step
  LocalStep left;     // of any step that counts
  StopWish stop;      // of any rank of the group; equal on every one
  // Of the step before, by rank; on rank 0 (rank_times.h).
  std::vector<RankTimes> times_before;
};

// step counts from 1. `wish` is this rank's. The gradient is the mean over the targets of all
// ranks, in a local step of those of the group, whatever their shares. Throws DivergedError when
// the loss or the gradient is not finite in fp32 either, or the loss runs away (step_guard.h);
// MachineError when a peer is lost.
StepOutcome train_step(Engine& engine, const StepBatch& batch, int64_t step, const StopWish& wish);

}  // namespace lockstep
