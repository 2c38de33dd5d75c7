// Runs a training run: opens the task, restores, loops, evaluates, saves, and leaves a complete run
// folder.
#pragma once

#include <atomic>
#include <memory>

#include "base/prefetcher.h"
#include "train/checkpoint/checkpoint_sharing.h"
#include "train/checkpoint/checkpoint_writer.h"
#include "train/checkpoint/training_state.h"
#include "train/config/run_config.h"
#include "train/folder/run_folder.h"
#include "train/folder/run_measurement.h"
#include "train/listeners/mlperf_log.h"
#include "train/loop/step_sharing.h"
#include "train/loop/step_sizes.h"
#include "train/loop/train_step.h"
#include "train/parts/bucket_clock.h"
#include "train/parts/trace_windows.h"
#include "train/parts/weight_histograms.h"

namespace lockstep {

// Set by the process's signal handlers to the signal that asked for a stop; 0 if none did.
extern std::atomic<int> stop_signal;

struct TrainerOptions {
  bool resume = false;  // go on from the newest complete checkpoint that any machine has
  // There must be a run to go on with, on whichever machine; else ConfigError. `found_run`, of rank
  // 0: its folder held one before this process made it.
  bool needs_run = false, found_run = false;
  bool stop_if_finished = false;  // a run that the checkpoint ends needs no batches and no loop
  // Above 0: a benchmark takes this many steps, writes and evaluates nothing; the folder need not
  // exist.
  int64_t benchmark_steps = 0;
  // A benchmark's steps are split as if among this many ranks, of which those of the world take
  // their shares; 0: as many as the world has.
  int64_t benchmark_ranks = 0;
  BucketClock* bucket_clock = nullptr;  // told of every gradient bucket; outlives the trainer
};

class Trainer {
 public:
  // Opens the task's data and builds everything. The folder exists (RunFolder::create on rank 0); a
  // machine that does not see it makes its own. Owns none of its arguments. Throws ConfigError when
  // configuration or data differ between ranks.
  Trainer(RunConfig& config, World& world, const RunFolder& folder, const TrainerOptions& options);
  ~Trainer();

  // Returns whether checkpoints are written to this rank's run folder (checkpoint_sharing.h).
  bool keeps_folder() const { return keeps_folder_; }

  // Returns whether the run took steps before, in an earlier process.
  bool has_history() const { return has_history_; }

  // With `stop_if_finished`: returns at which step a finished run ended and why. Empty: run() has
  // something to do. A run that ended by its time limit is not finished.
  const std::string& finished() const { return finished_; }

  // Call this before run(), on rank 0.
  void add_observer(std::unique_ptr<Observer> observer);

  // Trains until the last step, the time limit, the end of patience or a signal. Returns the signal
  // that stopped it, else 0.
  int run();

  // Whether the run stopped while the disk, or another machine, kept this rank's next batch from
  // it: the thread that waits for it cannot be ended, only left to the end of the process.
  bool waits_for_data() const { return batches_ == nullptr && waiting_batches_ != nullptr; }

  // Call this after the run() of a benchmark, on all ranks. Returns what the benchmark says of
  // the whole run besides its steps. Writes a checkpoint beside the run's folder, removes it, and
  // evaluates a few items. Throws MachineError when the disk refuses.
  RunMeasurement measure();

 private:
  void open_folder();
  void check_run_exists();
  std::optional<SharedCheckpoint> choose_checkpoint();
  void build_state(const std::optional<SharedCheckpoint>& checkpoint);
  void make_state(const TaskContext& context);
  void start_observers();
  void find_place();
  void tell_step_size(const std::optional<BatchSize>& before, int64_t steps_in_epoch);
  void divide_steps(int holder);
  void start_batches();
  bool is_due(int64_t every) const;
  bool is_any_due() const;
  bool ends_evaluated_epoch() const;
  // Whether the step that was reached is one after which evaluation.every evaluates.
  bool evaluation_is_due() const;
  bool meet(StepOutcome& outcome);
  void look_after_weights(const StopWish& stop);
  void tell_times(const std::vector<RankTimes>& ranks);
  void tell_last_times();
  void share_initial_weights();
  void check_weights(bool may_mend);
  void intervene(const InterventionRecord& record);
  void roll_back(const InterventionRecord& record);
  void keep(const StepBatch& batch) const;
  void evaluate();
  enum class Saving { kBeside, kNow };
  bool saves_beside() const;
  void save(Saving how);
  void finish_saving();
  void tell_saved(const WrittenCheckpoint& written);
  void remove_others();
  void time_checkpoint(RunMeasurement& out);
  void time_evaluation(RunMeasurement& out);
  bool stop_asked();
  void agree_on_stop();
  std::optional<StepBatch> next_batch();
  StopWish stop_wish(double elapsed_seconds);
  std::string end_reason(const StopWish& stop) const;  // empty: continue

  RunConfig& config_;
  World& world_;
  RunFolder folder_;
  TrainerOptions options_;
  bool keeps_folder_ = false;  // this rank writes checkpoints (checkpoint_sharing.h)
  bool has_history_ = false;
  std::string finished_;
  // Whether the launcher was told of a stop signal and of the first step.
  std::atomic<bool> stop_told_{false};
  bool first_told_ = false;
  bool stopping_ = false;  // all ranks know of a stop and agreed to end
  Task& task_;
  std::unique_ptr<TrainingState> state_;
  StepSizeFacts step_size_;
  int64_t saved_step_ = -1;  // of the newest checkpoint, which may be under way
  CheckpointWriter writer_;
  double held_seconds_ = 0;  // for which that checkpoint held up the training
  int64_t equal_step_ = 0;   // the last step before now at which all ranks had the same weights
  int64_t told_step_ = 0;    // the last step whose times observers were told
  std::unique_ptr<TraceWindows> windows_;         // none for a benchmark
  CacheClear caches_cleared_;                     // for the MLPerf log
  std::unique_ptr<WeightHistograms> histograms_;  // on rank 0, if asked for
  Observers observers_;                           // on rank 0
  std::unique_ptr<StepSharing> sharing_;
  std::unique_ptr<Prefetcher<StepBatch>> batches_;
  Prefetcher<StepBatch>* waiting_batches_ = nullptr;  // never deleted (waits_for_data())
  std::shared_ptr<Leave> leave_ = std::make_shared<Leave>();
};

}  // namespace lockstep
