// The run: opens the task, restores, loops, evaluates, saves, and leaves a complete run folder.
#pragma once

#include <atomic>
#include <memory>

#include "data/prefetcher.h"
#include "dist/comm_hooks.h"
#include "dist/gradient_reducer.h"
#include "train/checkpoint.h"
#include "train/run_config.h"
#include "train/run_folder.h"
#include "train/train_step.h"

namespace lockstep {

// Set by the signal handlers of the process: the number of the signal that asked for a stop, or 0.
extern std::atomic<int> stop_signal;

class Trainer {
 public:
  // Opens the task's data and builds everything. The folder exists (RunFolder::create on rank 0).
  // With `resume`, goes on from the newest complete checkpoint. Owns none of its arguments.
  Trainer(RunConfig& config, World& world, const RunFolder& folder, bool resume);
  ~Trainer();

  // Trains to the end, the time limit or a stop. Returns the signal that stopped it, else 0.
  int run();

 private:
  void build_network();
  void restore();
  void start_observers();
  void start_batches();
  StepBatch make_step();
  void advance(const StepBatch& batch);
  void check_weights();
  void evaluate();
  void save();
  StopWish stop_wish(double elapsed_seconds) const;

  RunConfig& config_;
  World& world_;
  RunFolder folder_;
  bool resume_;
  Task& task_;
  std::unique_ptr<WeightUpdate> update_;
  std::unique_ptr<CommHook> hook_;
  std::unique_ptr<GradientReducer> reducer_;
  RunPosition position_;
  int64_t evaluated_step_ = -1, saved_step_ = -1;
  Observers observers_;  // rank 0 only
  RunPosition planned_;  // of the next step that the prefetch thread makes
  std::unique_ptr<Prefetcher<StepBatch>> batches_;
};

}  // namespace lockstep
