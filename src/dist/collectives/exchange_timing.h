// Measures how long sums over the ranks take here: `plan` fits its link to it, `doctor` reports it.
#pragma once

#include <chrono>
#include <cstdint>

#include "dist/collectives/world.h"

namespace lockstep {

struct ExchangeRequest {
  int64_t bytes = 0;  // of fp32 numbers
  int parts = 1;      // sums into which they are cut, all started at once, like buckets
  int repeats = 5;    // timed repeats, after one that is not timed
  // Pause before each sum: TCP resets its window when a connection was idle,
  // as it is in every step.
  std::chrono::milliseconds pause{0};
  std::chrono::milliseconds limit{3000};  // no further repeat begins after this time
};

struct ExchangeTime {
  int repeats = 0;         // that were timed, at least one
  double seconds = 0;      // of one sum: median over the repeats of the mean over the ranks
  double cpu_seconds = 0;  // of one sum, all threads of a rank: likewise
};

// All ranks call it with the same request. Throws MachineError.
ExchangeTime time_exchange(World& world, const ExchangeRequest& request);

}  // namespace lockstep
