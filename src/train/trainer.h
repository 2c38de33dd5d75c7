// The run: opens the task, restores, loops, evaluates, saves, and leaves a complete run folder.
#pragma once

#include <atomic>
#include <memory>

#include "data/prefetcher.h"
#include "dist/comm_hooks.h"
#include "dist/gradient_reducer.h"
#include "train/checkpoint.h"
#include "train/frozen_weights.h"
#include "train/run_config.h"
#include "train/run_folder.h"
#include "train/train_step.h"

namespace lockstep {

// Set by the signal handlers of the process: the number of the signal that asked for a stop, or 0.
extern std::atomic<int> stop_signal;

struct TrainerOptions {
  bool resume = false;  // go on from the newest complete checkpoint
  // Above 0: take so many steps, write nothing, evaluate nothing; the folder need not exist.
  int64_t benchmark_steps = 0;
};

class Trainer {
 public:
  // Opens the task's data and builds everything. The folder exists (RunFolder::create on rank 0).
  // Owns none of its arguments.
  Trainer(RunConfig& config, World& world, const RunFolder& folder, const TrainerOptions& options);
  ~Trainer();

  // Before run(), on rank 0.
  void add_observer(std::unique_ptr<Observer> observer);

  // Trains to the end, the time limit, the end of patience or a stop. Returns the signal that
  // stopped it, else 0.
  int run();

 private:
  std::string choose_checkpoint();
  void build_network(bool fresh);
  void restore(const std::string& checkpoint);
  void start_observers();
  void start_batches();
  StepBatch make_step();
  void advance(const StepBatch& batch, bool updated);
  void check_weights();
  void evaluate();
  void save();
  StopWish stop_wish(double elapsed_seconds) const;
  std::string end_reason(const StopWish& stop) const;  // empty: go on

  RunConfig& config_;
  World& world_;
  RunFolder folder_;
  TrainerOptions options_;
  Task& task_;
  FrozenWeights frozen_;
  std::unique_ptr<WeightUpdate> update_;
  std::unique_ptr<StepGuard> guard_;
  std::unique_ptr<CommHook> hook_;
  std::unique_ptr<GradientReducer> reducer_;
  RunPosition position_;
  bool epoch_done_ = false;  // position_ is at the end of its epoch
  int64_t total_steps_ = 0;  // of the run; with epochs, about
  int64_t saved_step_ = -1;
  Observers observers_;  // rank 0 only
  RunPosition planned_;  // of the next step that the prefetch thread makes
  std::unique_ptr<Prefetcher<StepBatch>> batches_;
};

}  // namespace lockstep
