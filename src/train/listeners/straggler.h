// Finds the rank that is slower than the others, and why, as far as its figures tell. All ranks
// take the same steps; the slow one is still busy when the others already wait for it.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "dist/liveness/failure_detector.h"

namespace lockstep {

// How a rank spent its time over the newest steps.
struct StepShares {
  int64_t steps = 0;        // measured steps; 0: nothing is known
  double step_seconds = 0;  // mean; compute, wait and data add up to it
  double compute_seconds = 0, wait_seconds = 0, data_seconds = 0;
  double targets_per_second = 0;  // of all ranks, per second in which this rank was busy
  double busy_seconds() const { return compute_seconds + data_seconds; }
};

struct Straggler {
  int rank = -1;
  std::string host;   // its name
  double factor = 1;  // its busy time per step over the median of the other ranks'
  std::string guess;  // "its cores are busy with other programs", ...
};

class StragglerWatch {
 public:
  using Time = RankSeen::Time;

  void add(const std::vector<RankSeen>& ranks, Time now);
  // Returns the shares by rank, over about the last 20 seconds of add().
  std::vector<StepShares> shares() const;
  // Returns the slowest rank, if it is more than 15 % slower than the median of the others.
  std::optional<Straggler> slowest() const { return slowest_; }
  // Returns the slowest rank once it has been so for half a minute, and again every ten minutes.
  std::optional<Straggler> lasting(Time now);

 private:
  struct Moment {
    Time time;
    std::vector<StepSums> sums;  // by rank
  };
  std::optional<Straggler> find() const;

  std::deque<Moment> moments_;
  std::vector<RankSeen> ranks_;  // the newest
  std::optional<Straggler> slowest_;
  Time slow_since_{}, told_{};
};

}  // namespace lockstep
