// What happens to a bucket of gradients between backward pass and optimizer: the seam for
// compression, delay and local steps. Hooks are decorators: each wraps the next, the last is the
// plain all-reduce.
#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <string>

#include "base/catalogue.h"
#include "dist/world.h"

namespace lockstep {

struct GradientBucket {
  int index = 0;            // in the order in which buckets start, alike on all ranks
  torch::Tensor gradients;  // [numel], a contiguous slice of the flat gradients
};

class CommHook {
 public:
  virtual ~CommHook() = default;
  // Starts replacing bucket.gradients by their sum over all ranks, or by what the hook makes of it;
  // the completion waits until that is done. Completions are called in the order of the starts,
  // after the last bucket of the step has started.
  virtual Completion start(const GradientBucket& bucket) = 0;
};

using CommHookFactory =
    std::function<std::unique_ptr<CommHook>(World&, std::unique_ptr<CommHook> next)>;

// "none", "bf16".
const Catalogue<CommHookFactory>& comm_hooks();

// The named hook around the plain all-reduce; `world` must outlive it.
// Throws ConfigError for an unknown name.
std::unique_ptr<CommHook> make_comm_hook(World& world, const std::string& name);

}  // namespace lockstep
