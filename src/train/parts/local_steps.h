// Steps without the others: groups of ranks train on their own and meet every H steps. Local SGD
// (Stich 2019; Lin et al. 2020, "Don't Use Large Mini-Batches, Use Local SGD") takes the mean of
// the weights; DiLoCo (Douillard et al. 2023, algorithm 1) takes what the mean moved by as the
// gradient of an outer SGD with Nesterov momentum. docs/launch.md#slow-links: when to use which.
//
// What holds: after a meeting that nothing overlaps all ranks have the same weights, bit by bit.
// Weights are evaluated, checked and saved only then. When groups meet follows from the
// configuration and the step alone, so that nobody asks anybody between two meetings.
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
#include "optim/optimizer.h"
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
  std::string check() const;  // empty, or what does not go together
};

// As hooks see them: in the order of the flat arrays.
std::vector<GradientShape> gradient_shapes(const Parameters& parameters);

// Sums gradients as `whole` does, or plainly over the ranks of this machine.
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

// What a rank wishes to happen after this step: that the run ends, and why; of rank 0, that spans
// are recorded (trace_windows.h).
struct StopWish {
  bool out_of_time = false;
  bool interrupted = false;  // by a signal
  int64_t trace_steps = 0;   // how many steps' spans; 0: none
};

// What a step of one group left, for the next meeting.
struct LocalStep {
  int64_t step = 0;
  int64_t targets = 0;       // of this rank
  int64_t all_targets = 0;   // of all ranks together, as planned
  double loss = 0;           // sum over this rank's targets, or 0 for a lost step
  double average_decay = 1;  // of the moving average in this step
  StopWish stop;             // of this rank
};

class LocalSteps {
 public:
  struct Parts {  // what it works on; all outlive it but `average`, which is shared
    World& world;
    Parameters& parameters;
    FrozenWeights& frozen;
    torch::Tensor average;  // moving average of the weights, fp32 [total], or undefined
  };
  // All ranks make it together. `hooks`: what the groups' differences go through, with buckets of
  // `bucket_bytes`.
  LocalSteps(const Parts& parts, const LocalStepsConfig& config, CommHookConfig hooks,
             int64_t bucket_bytes);

  // Whose gradients a step adds up.
  Reach reach(int64_t step) const;
  bool is_local(int64_t step) const { return reach(step) != Reach::kAll; }

  // From weights that are equal on all ranks after `step` steps: a new run's, or a checkpoint's.
  void begin(int64_t step);

  struct Occasion {
    bool last = false;  // the run ends with this step: the groups meet
    bool due = false;   // weights are wanted to evaluate or save: the next meeting waits for all
  };
  // After each step of this group, lost ones too. Returns whether all ranks hold equal weights now;
  // then `stop` is what any rank wished since they last did. Throws MachineError, and DivergedError
  // when a group's weights are not finite.
  bool after_step(const LocalStep& step, const Occasion& occasion, StopWish& stop);

  // What the last after_step() did, if it met or took over what others sent.
  const std::optional<MeetingRecord>& meeting() const { return meeting_; }

  // The first rank of this rank's group, whose optimizer has the same state.
  int group_leader() const;

  // Of the checkpoint: the outer momentum, alike on all ranks; the hooks' arrays, of this rank.
  std::vector<StateArray> outer_state();
  CommHook* hook() { return hook_.get(); }  // null without local steps

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
  // Flat, as the weights. anchor_: the weights of the last meeting, alike on all ranks. delta_: the
  // way from the weights to it, of this rank and then of all. sent_: the weights it was taken from.
  torch::Tensor anchor_, delta_, sent_;
  std::unique_ptr<Optimizer> outer_;
  std::vector<Completion> running_;  // of the sums under way
  torch::Tensor agreed_;             // fp64 [4]: loss, wishes; under way with them
  int64_t started_step_ = -1;        // of the sums under way; -1: none
  int64_t begun_step_ = 0;           // weights were equal then
  int64_t steps_ = 0;                // since the last start
  LocalStep since_;                  // added up since then
  LocalStep started_;                // what it was when the sums started
  int64_t started_steps_ = 0;
  double start_seconds_ = 0;
  StopWish wished_;  // by anyone, as agreed since begun_step_
  std::optional<MeetingRecord> meeting_;
};

}  // namespace lockstep
