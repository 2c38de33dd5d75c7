// Makes micro-batches as large as memory allows (training.fit_memory), by trial steps. What a step
// learns stays the same; only the number of parts in which it is computed changes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

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

// What fits each rank, equal on all of them.
struct MemoryFit {
  std::vector<int64_t> loads;  // by rank: of the largest micro-batch that fits
  int64_t step_load = 0;       // of the largest step, with what parts of a step differ

  // Returns in how many micro-batches a rank computes its share of a step.
  int64_t micro_batches(const RankShares& shares, std::size_t rank) const;
};

struct MemoryRoom {
  double limit_bytes = 0;   // for all tensors of a rank; 0: three quarters of what is free
  double largest_part = 1;  // of a step, that a rank may have to compute
};

// Tries forward and backward passes of short and of long items on this rank's device, and tells all
// ranks which load fits. Without a limit a rank has what its tensors take now plus its part, among
// the ranks of its machine, of three quarters of the free memory. Where a task's ranks compute
// together, all get the smallest load. Gradients are zero afterwards. Throws MachineError when the
// smallest trial step does not fit some rank, ConfigError for a task whose steps cannot be fitted.
// Collective.
MemoryFit fit_to_memory(Task& task, World& world, GradientReducer& reducer, const MemoryRoom& room);

}  // namespace lockstep
