// Implements local steps: groups of ranks train on their own and synchronize every H steps, in what
// this file calls a meeting. Local SGD (Stich 2019; Lin et al. 2020, "Don't Use Large Mini-Batches,
// Use Local SGD") averages the weights; DiLoCo (Douillard et al. 2023, algorithm 1) uses the
// displacement of their mean as the gradient of an outer SGD with Nesterov momentum.
// docs/launch.md#slow-links says when to use which.
//
// After a meeting without overlap, all ranks have the same weights, bit by bit; only then are
// weights evaluated, checked and saved. When groups meet follows from the configuration and the
// step alone, so that no rank has to ask another between two meetings; but for a stop they meet
// after the first step that none of them has passed (dist/liveness/stop_news.h).
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/fields.h"
#include "dist/gradients/comm_hooks.h"
#include "dist/gradients/gradient_reducer.h"
#include "nn/parameters.h"
#include "optim/optimizers/optimizer.h"
#include "train/parts/frozen_weights.h"
#include "train/records/observers.h"

namespace lockstep {

struct LocalStepsConfig {
  std::string strategy = "every_step";
  int64_t local_steps = 50;
  int64_t local_after = 500;
  std::string local_group = "rank";
  double outer_lr = 0.7;  // Douillard et al. 2023, table 5 in OpenDiLoCo's numbers
  double outer_momentum = 0.9;
  int64_t overlap_steps = 0;

  void describe(Fields& f);
  bool is_on() const { return strategy != "every_step"; }
  std::string check() const;  // what does not go together, or empty
};

// Returns the shapes as hooks see them, in the order of the flat arrays.
std::vector<GradientShape> gradient_shapes(const Parameters& parameters);

// Sums gradients as `whole` does, or by plain all-reduce over the ranks of this machine.
class ReachHook final : public CommHook {
 public:
  ReachHook(World& world, std::unique_ptr<CommHook> whole);
  Completion start(const GradientBucket& bucket) override;
  std::vector<HookArray> state() override { return whole_->state(); }
  void restored() override { whole_->restored(); }
  void set_reach(Reach reach) { reach_ = reach; }

 private:
  World& world_;
  std::unique_ptr<CommHook> whole_;
  Reach reach_ = Reach::kAll;
};

// What a rank wishes to happen after this step: that the run ends, and why; and, from rank 0, that
// spans are recorded (trace_windows.h).
struct StopWish {
  bool out_of_time = false;
  bool interrupted = false;  // by a signal
  int64_t trace_steps = 0;   // number of steps to record; 0: none
};

// What a step of one group contributes to the next meeting.
struct LocalStep {
  int64_t step = 0;
  int64_t targets = 0;       // of this rank
  int64_t all_targets = 0;   // of all ranks, as planned
  double loss = 0;           // sum over this rank's targets; 0 for a lost step
  double average_decay = 1;  // of the moving average in this step
  StopWish stop;             // of this rank
};

class LocalSteps {
 public:
  struct Parts {  // all but `average`, which is shared, outlive LocalSteps
    World& world;
    Parameters& parameters;
    FrozenWeights& frozen;
    torch::Tensor average;  // moving average of the weights, fp32 [total], or undefined
  };
  // All ranks construct it together. `hooks` says how the groups' differences are sent, in buckets
  // of `bucket_bytes`.
  LocalSteps(const Parts& parts, const LocalStepsConfig& config, CommHookConfig hooks,
             int64_t bucket_bytes);

  // Says over which ranks a step sums gradients.
  Reach reach(int64_t step) const;
  bool is_local(int64_t step) const { return reach(step) != Reach::kAll; }

  // Starts from weights that are equal on all ranks after `step` steps: a new run's or a
  // checkpoint's.
  void begin(int64_t step);

  struct Occasion {
    bool last = false;  // the run ends with this step: the groups meet
    bool due = false;   // weights are to be evaluated or saved: the next meeting does not overlap
  };
  // Call this after each step of this group, including lost ones. Returns whether all ranks now
  // hold equal weights; then `stop` combines the wishes of all ranks since they last did. Throws
  // MachineError, and DivergedError when a group's weights are not finite.
  bool after_step(const LocalStep& step, const Occasion& occasion, StopWish& stop);

  // The meeting that the last after_step() completed, if it did.
  const std::optional<MeetingRecord>& meeting() const { return meeting_; }

  // Returns the first rank of this rank's group. All ranks of a group have the same optimizer
  // state.
  int group_leader() const;

  // Returns the outer momentum for checkpoints; it is equal on all ranks.
  std::vector<StateArray> outer_state();
  // Its arrays, of this rank, belong in checkpoints. Null without local steps.
  CommHook* hook() { return hook_.get(); }

 private:
  void start(int64_t step);
  void finish(int64_t step);
  void take_outer_step(bool keep_way);

  World& world_;
  Parameters& parameters_;
  FrozenWeights& frozen_;
  torch::Tensor average_;
  LocalStepsConfig config_;
  std::unique_ptr<CommHook> hook_;
  std::vector<std::pair<int64_t, int64_t>> slices_;  // of the flat arrays, in their order
  // Flat, as the weights. anchor_: the weights of the last meeting, equal on all ranks. delta_:
  // anchor_ minus the weights, of this rank, then summed over all. sent_: the weights that delta_
  // was computed from.
  torch::Tensor anchor_, delta_, sent_;
  std::unique_ptr<Optimizer> outer_;
  std::vector<Completion> running_;  // of the sums under way
  torch::Tensor agreed_;             // fp64 [4]: loss, wishes; summed with them
  int64_t started_step_ = -1;        // step at which the sums under way started; -1: none
  int64_t begun_step_ = 0;           // the last step with equal weights
  int64_t steps_ = 0;                // since the last start
  LocalStep since_;                  // accumulated since then
  LocalStep started_;                // since_ when the sums started
  int64_t started_steps_ = 0;
  double start_seconds_ = 0;
  StopWish wished_;  // by any rank, as agreed since begun_step_
  std::optional<MeetingRecord> meeting_;
};

}  // namespace lockstep
