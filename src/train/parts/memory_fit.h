// Makes micro-batches as large as memory allows (training.fit_memory), by trial steps. What a step
// learns stays the same; only the number of parts in which it is computed changes.
#pragma once

#include <cstdint>
#include <functional>

#include "dist/collectives/world.h"
#include "dist/gradients/gradient_reducer.h"
#include "tasks/task.h"

namespace lockstep {

// Returns the largest load, up to `most`, at which `peak_bytes(load)` stays within `limit_bytes`,
// to one part in 16; 0 when not even `least` does. The trials grow so that none is expected, from
// the earlier ones, to exceed the limit by far.
struct LoadRange {
  int64_t least = 1, most = 1;
};
int64_t largest_load_that_fits(const std::function<int64_t(int64_t load)>& peak_bytes,
                               const LoadRange& range, int64_t limit_bytes);

// Tries forward and backward passes of short and of long items on this rank's device, agrees with
// all ranks on the smallest load that fits, and sets and logs the task's number of micro-batches.
// limit_bytes is for all tensors of a rank; 0 means what they take now plus this rank's part, among
// the ranks of its machine, of three quarters of the free memory. Gradients are zero afterwards.
// Throws MachineError when the smallest trial step does not fit, ConfigError for a task whose steps
// cannot be fitted. Collective.
void fit_to_memory(Task& task, World& world, GradientReducer& reducer, double limit_bytes);

}  // namespace lockstep
