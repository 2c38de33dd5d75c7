// What evaluations have said of each metric so far, as every checkpoint holds it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace lockstep {

struct RankedStep {
  int64_t step = 0;
  double value = 0;
};

struct MetricHistory {
  std::string metric;
  std::vector<RankedStep> best;  // best first
  int64_t stalled = 0;           // evaluations since the metric improved
};

// One entry per watched metric, in the order of evaluation.metrics.
using Validation = std::vector<MetricHistory>;

// Returns the steps whose checkpoints are to be kept.
std::set<int64_t> best_steps(const Validation& validation);

}  // namespace lockstep
