// Micro-batches as large as memory allows (training.fit_memory), found by trial steps: what a step
// learns stays the same, only the number of parts it is computed in changes.
#pragma once

#include <cstdint>
#include <functional>

#include "dist/collectives/world.h"
#include "dist/gradients/gradient_reducer.h"
#include "tasks/task.h"

namespace lockstep {

// The largest load, up to `most`, at which `peak_bytes(load)` stays within `limit_bytes`, to one
// part in 16; 0 when not even `least` does. Loads are tried in an order in which none is expected,
// from the ones before, to go far beyond the limit.
struct LoadRange {
  int64_t least = 1, most = 1;
};
int64_t largest_load_that_fits(const std::function<int64_t(int64_t load)>& peak_bytes,
                               const LoadRange& range, int64_t limit_bytes);

// Probes forward and backward passes of short and of long items on this rank's device, agrees with
// all ranks on the smallest load that fits, and sets the task's number of micro-batches, which it
// logs. limit_bytes: for all tensors of a rank; 0: three quarters of what is free and its own,
// shared among the ranks of its machine. Gradients are zero afterwards. MachineError when a single
// item does not fit.
void fit_to_memory(Task& task, World& world, GradientReducer& reducer, double limit_bytes);

}  // namespace lockstep
