// The mean of several checkpoints' weights: often better than each of them (Vaswani et al. 2017,
// section 6.1, average the last 5 or 20).
#pragma once

#include <vector>

#include "base/file.h"

namespace lockstep {

struct AverageRequest {
  std::vector<fs::path> checkpoints;  // at least one, all of one architecture
  std::vector<double> shares;         // of each, any positive scale; empty: alike
  bool moving = false;                // of their moving averages, where they have some
};

// Writes `out`, a run folder to evaluate, translate with, average or begin from
// (run.load_model): the weights as one checkpoint of the newest one's step, and what the run of the
// first checkpoint keeps beside. Sums are taken in double. Throws ConfigError when `out` is there
// already, DataError for a damaged checkpoint or one of another architecture, which names the
// tensor, its expected and found shape.
void write_average(const AverageRequest& request, const fs::path& out);

}  // namespace lockstep
