// Decides the ranks' shares of a step from the times that all of them took (batch.shares =
// "speed"). Pure: from equal times every rank decides the same, without a message of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/steps/rank_shares.h"
#include "formats/step_times.h"

namespace lockstep {

// What a rank's step costs it, in seconds.
struct RankPace {
  double work = 0;   // forward and backward: grows with its share
  double fixed = 0;  // batches, update and the rest: does not
  double busy() const { return work + fixed; }
};

struct BalancedShares {
  std::vector<double> parts;  // of one, by rank
  double seconds = 0;         // for which the slowest rank would be busy
};
// Returns the shares with which all ranks end together, and none has less than `least` of the step
// (by rank): the smallest T with sum over ranks of (T - fixed) * part / work = 1. `parts`: the
// shares that the paces were measured with. REQUIRES that the least shares leave room, and work
// above 0.
BalancedShares balance(std::span<const RankPace> paces, std::span<const double> parts,
                       std::span<const double> least);

struct ShareRules {
  int64_t warm_up = 3;          // steps that say nothing: after a start and after every change
  int64_t first_window = 8;     // steps whose medians the first decisions are made from,
  double first_gain = 0.05;     // where a step gets shorter by this part
  int64_t first_decisions = 3;  // so many: what a share costs is known better after each
  int64_t window = 30;          // later: over as many steps
  double gain = 0.10;
  // To these gains is added by how much the decision before fell short of its promise: steps are of
  // whole items, and a share that cannot be met must not be asked for again and again.
};

struct ShareProposal {
  std::vector<double> parts;    // of one, by rank
  std::vector<double> seconds;  // for which each rank was busy in a step: medians
  double gain = 0;              // by which a step gets shorter, as a part of one
};

class SharePolicy {
 public:
  explicit SharePolicy(const ShareRules& rules) : rules_(rules) {}

  // Tells of a step: with which parts of one it was divided, and how long each rank took. Returns
  // other shares when they are due.
  std::optional<ShareProposal> after_step(const std::vector<double>& parts,
                                          std::span<const double> least,
                                          std::span<const RankTimes> times);

 private:
  ShareRules rules_;
  std::vector<double> parts_;                  // of the steps in the window
  std::vector<std::vector<RankPace>> window_;  // by step, then by rank
  int64_t passed_over_ = 0, looked_ = 0;       // times that a window was full
  double promised_ = 0;   // seconds, by the decision before; 0: none, or judged
  double shortfall_ = 0;  // of its promise, as a part of it
};

}  // namespace lockstep
