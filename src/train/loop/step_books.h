// Keeps the books of a step: what is measured and recorded while the step is taken. Nothing here
// changes a weight.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "train/checkpoint/training_state.h"
#include "train/loop/step_maker.h"
#include "train/records/observers.h"

namespace lockstep {

// Supplies a step's batch, and what this rank wishes to happen after the step.
struct StepInputs {
  // Nothing: a stop was asked for while the batch was waited for.
  std::function<std::optional<StepBatch>()> next_batch;
  std::function<StopWish()> wish = [] { return StopWish(); };  // called once the batch is there
  // Asked between micro-batches: the step is given up where another one would begin.
  std::function<bool()> stop_asked = [] { return false; };
  // Called with the batch of a step that the guard takes out, or for which it stops the run.
  std::function<void(const StepBatch&)> keep_batch = [](const StepBatch&) {};
};

// Sums over micro-batches and ranks. All are doubles, so that they travel as one small message.
struct StepTotals {
  double loss = 0, nll = 0, correct = 0, top5 = 0;
  double sources = 0, items = 0, targets = 0;
  double out_of_time = 0, interrupted = 0, trace_steps = 0;  // StopWish
  double out_of_memory = 0;  // ranks that could not compute their micro-batches
  double given_up = 0;       // ranks that did not finish the step for a stop

  void add(const Batch& batch);
  // Reads the figures of micro-batches, all at once: a device is waited for.
  void add(std::span<const LossParts> parts);
  void add(const StopWish& wish);
  StopWish wish() const;
};

// One forward and backward pass over the batch of a step, and the sums of its results over the
// ranks.
struct StepPass {
  Numerics numerics;                 // that the pass computed in
  std::optional<double> loss_scale;  // in fp16
  double targets = 1;                // of the step, as planned
  double unit = 1;                   // of the gradients; their sums are divided by it
  StepTotals own, totals;            // of this rank; of all participating ranks
  std::vector<double> message;       // the totals, then the times of the ranks' previous steps
  ReduceTimings reduced;
  double wait_seconds = 0;  // spent waiting for the ranks' sums
  StepSigns signs;
  StepVerdict verdict = StepVerdict::kSkip;
  StepSize size;             // of the update
  double average_decay = 1;  // of the moving average of the weights, for the update
};

struct StepOutcome {
  // True: a rank ran out of memory, and nothing changed; the batch is due again, in smaller parts.
  bool out_of_memory = false;
  int64_t too_many_items = 0;  // in this rank's largest micro-batch, if it is one of them
  // What the guard did to the step, if anything. After "roll_back" the weights are still those
  // before the step.
  std::optional<InterventionRecord> intervention;
  // False: fp16 gradients overflowed, the guard took the step out, or a group of local steps had no
  // targets; the batch is lost.
  bool updated = true;
  // False: the step is still due. A lost local step counts all the same, so that all groups count
  // alike.
  bool counts = true;
  // A rank gave the step up for a stop: all did, nothing has changed, and no step may follow.
  bool given_up = false;
  StepRecord record;  // of an updated step
  LocalStep left;     // of any step that counts
  StopWish stop;      // of any rank of the group; equal on all of them
  // Times of the previous step, by rank (rank_times.h).
  std::vector<RankTimes> times_before;
};

class StepBooks {
 public:
  // Opens the books of the step after state.position.
  explicit StepBooks(TrainingState& state);

  // Gets the step's batch, and records how long it took and what this rank wishes. Nothing: as
  // StepInputs::next_batch.
  std::optional<StepBatch> fetch(const StepInputs& inputs);

  // Write and read the message by which the ranks sum a pass's totals.
  void write_message(StepPass& pass) const;
  void read_message(StepPass& pass) const;

  StepOutcome close(const StepBatch& batch, const StepPass& pass) const;
  // Closes the books of a pass for which some rank's memory did not suffice.
  StepOutcome close_unfinished(const StepBatch& batch, const StepPass& pass) const;
  StepOutcome close_given_up(const StepPass& pass) const;

 private:
  struct Account {  // what the rank's StepAccount holds at one moment
    RankTimes times;
    int64_t sent = 0, received = 0;
  };
  Account account() const;
  StepRecord record(const StepBatch& batch, const StepPass& pass) const;

  TrainingState& state_;
  StopWish wish_;  // of this rank
  int64_t step_;
  double data_seconds_ = 0;
  std::chrono::steady_clock::time_point start_;  // of the first pass
  Account before_;                               // the account at start_
};

}  // namespace lockstep
