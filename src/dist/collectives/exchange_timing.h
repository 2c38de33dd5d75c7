// How long sums over the ranks take here: what a plan fits its link on, and a doctor reports.
#pragma once

#include <chrono>
#include <cstdint>

#include "dist/collectives/world.h"

namespace lockstep {

struct ExchangeRequest {
  int64_t bytes = 0;  // of fp32 numbers
  int parts = 1;      // sums that they are cut into, all started at once, as buckets are
  int repeats = 5;    // timed, after one that is not
  // Before each one: TCP forgets its window when a connection was idle, as it is in every step.
  std::chrono::milliseconds pause{0};
  std::chrono::milliseconds limit{3000};  // no further repeat begins after this time
};

struct ExchangeTime {
  int repeats = 0;         // that were timed, at least one
  double seconds = 0;      // of one: median over the repeats of the ranks' mean
  double cpu_seconds = 0;  // of one, all threads of a rank: the same
};

// Called by all ranks, with the same request. Throws MachineError.
ExchangeTime time_exchange(World& world, const ExchangeRequest& request);

}  // namespace lockstep
