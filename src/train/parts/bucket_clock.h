// When the buckets of gradients of a step are complete: what decides how much of a slow exchange
// the backward pass hides (lockstep plan).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "dist/gradients/comm_hooks.h"

namespace lockstep {

// The buckets of the step under way, or of the last one. Written by the thread of the backward
// pass, read between steps.
struct BucketClock {
  struct Entry {
    int64_t bytes = 0;  // of fp32 gradients
    std::chrono::steady_clock::time_point ready;
  };
  std::vector<Entry> buckets;  // in the order in which they start
};

// A hook around `next` that notes when each bucket starts; the clock outlives it.
std::unique_ptr<CommHook> time_buckets(std::unique_ptr<CommHook> next, BucketClock& clock);

}  // namespace lockstep
