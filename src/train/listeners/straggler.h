// Which rank is slower than the others, and why, as far as its figures tell. All ranks take the
// same steps; the slow one is busy when the others wait for it already.
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
  int64_t steps = 0;        // that this is about; 0: nothing is known
  double step_seconds = 0;  // mean; the three add up to it
  double compute_seconds = 0, wait_seconds = 0, data_seconds = 0;
  double targets_per_second = 0;  // of all ranks, over the time that this one did not wait
  double busy_seconds() const { return compute_seconds + data_seconds; }
};

struct Straggler {
  int rank = -1;
  std::string host;   // its name
  double factor = 1;  // its busy time a step over the median of the other ranks'
  std::string guess;  // "its cores are busy with other programs", ...
};

class StragglerWatch {
 public:
  using Time = RankSeen::Time;

  void add(const std::vector<RankSeen>& ranks, Time now);
  // By rank, over what add() was told in about the last 20 seconds.
  std::vector<StepShares> shares() const;
  // The slowest rank, if it is more than 15 % slower than the median of the others.
  std::optional<Straggler> slowest() const { return slowest_; }
  // The slowest rank once it has been the slowest for half a minute; again after ten minutes.
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
