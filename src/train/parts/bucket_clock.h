// Records when the gradient buckets of a step are complete, which decides how much of a slow
// exchange the backward pass hides (lockstep plan).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "dist/account/step_account.h"
#include "dist/gradients/comm_hooks.h"

namespace lockstep {

// The buckets of the step under way, or of the last one. The thread of the backward pass writes
// them; they may be read between steps.
struct BucketClock {
  struct Entry {
    int64_t bytes = 0;  // of fp32 gradients
    std::chrono::steady_clock::time_point ready;
    DeviceClock::Mark mark;  // on a device: when it had computed the bucket
  };
  std::vector<Entry> buckets;      // in the order in which they start
  StepAccount* account = nullptr;  // set where a device computes; outlives this
};

// Returns a hook around `next` that records when each bucket starts; `clock` must outlive it.
std::unique_ptr<CommHook> time_buckets(std::unique_ptr<CommHook> next, BucketClock& clock);

}  // namespace lockstep
