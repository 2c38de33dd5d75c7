// Averages the weights of several checkpoints. The average is often better than each of them
// (Vaswani et al. 2017, section 6.1, average the last 5 or 20).
#pragma once

#include <vector>

#include "base/file.h"

namespace lockstep {

struct AverageRequest {
  std::vector<fs::path> checkpoints;  // at least one, all of one architecture
  std::vector<double> shares;         // weight of each, on any positive scale; empty: equal weights
  bool moving = false;                // takes the moving average where a checkpoint has one
};

// Writes `out`, a run folder to evaluate, translate with, average or start from (run.load_model):
// one checkpoint with the averaged weights, under the newest checkpoint's step, and the other files
// of the first checkpoint's run but its history. Sums are taken in double. Throws ConfigError when
// `out` exists and is not empty, and DataError for a damaged checkpoint or one of another
// architecture, naming the tensor, its expected and its found shape.
void write_average(const AverageRequest& request, const fs::path& out);

}  // namespace lockstep
