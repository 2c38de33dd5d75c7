// Measures how long sums over the ranks take here: `plan` fits its link to it, `doctor` reports it.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "dist/collectives/world.h"

namespace lockstep {

struct ExchangeRequest {
  std::vector<int64_t> sums;  // bytes of fp32 numbers of each; all start at once, like buckets
  // How often. The first half does not count: TCP's windows open, and after a loss in their opening
  // take seconds to recover on long paths.
  int repeats = 10;
  // Pause before each sum: TCP makes its window smaller when a connection was idle for long.
  std::chrono::milliseconds pause{0};
  std::chrono::milliseconds limit{3000};  // no further repeat begins after this time
};

struct ExchangeTime {
  int repeats = 0;         // that counted, at least one
  double seconds = 0;      // of all sums: median over the repeats of the mean over the ranks
  double cpu_seconds = 0;  // of all sums, all threads of a rank: likewise
};

// All ranks call it with the same request. Throws MachineError.
ExchangeTime time_exchange(World& world, const ExchangeRequest& request);

}  // namespace lockstep
