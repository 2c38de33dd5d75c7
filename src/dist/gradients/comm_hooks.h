// What happens to a bucket of gradients between backward pass and optimizer: the seam for
// compression. Hooks are decorators: each wraps the next, the last is the plain all-reduce.
//
// "powersgd+bf16" names them in the order in which gradients pass: PowerSGD makes small factors of
// them, which go over the wire as bf16. docs/launch.md#slow-links says which to use when.
#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/catalogue.h"
#include "config/fields.h"
#include "dist/collectives/world.h"
#include "dist/gradients/powersgd.h"

namespace lockstep {

struct GradientBucket {
  int index = 0;            // in the order in which buckets start, alike on all ranks
  torch::Tensor gradients;  // [numel], a contiguous slice of the flat gradients
  int64_t begin = 0;        // its first element in the flat gradients
  // What the sum will be divided by: targets of the step times loss scale. Alike on all ranks.
  double unit = 1;
  const char* part = "";  // of what a hook makes of a bucket, for errors: ", factor P"
};

// An array that a hook carries from step to step, different on every rank. Shared, not copied.
struct HookArray {
  std::string name;
  torch::Tensor data;  // flat
};

class CommHook {
 public:
  virtual ~CommHook() = default;
  // Starts replacing bucket.gradients by their sum over all ranks, or by what the hook makes of it;
  // the completion waits until that is done. Completions are called in the order of the starts,
  // after the last bucket of the step has started. What is not finite on one rank comes out not
  // finite on all.
  virtual Completion start(const GradientBucket& bucket) = 0;
  // What a run needs to go on bit by bit, in a fixed order; none by default.
  virtual std::vector<HookArray> state() { return {}; }
  // After the arrays of state() were overwritten with those of a checkpoint.
  virtual void restored() {}
};

struct CommHookConfig {
  std::string hook = "none";
  PowerSgdConfig powersgd = {};

  void describe(Fields& f);                // the key "hook"
  std::vector<std::string> names() const;  // split at +
  std::string check() const;               // empty, or why these hooks cannot stand in this order
  // Whether a hook needs parameters to lie whole in a bucket.
  bool needs_whole_parameters() const;
  // Of one sum's messages, once: the flat gradients as the hooks leave them. Factors of PowerSGD
  // are those of `parameters`.
  double message_bytes(const std::vector<GradientShape>& parameters) const;
};

struct HookContext {
  World& world;
  const CommHookConfig& config;
  const std::vector<GradientShape>& parameters;
};

using CommHookFactory =
    std::function<std::unique_ptr<CommHook>(const HookContext&, std::unique_ptr<CommHook> next)>;

// "none", "bf16", "fp16", "powersgd".
const Catalogue<CommHookFactory>& comm_hooks();

// The named hooks around the plain all-reduce; `world` must outlive them. `parameters`: of the flat
// gradients, ascending; only powersgd needs them. Throws ConfigError for what check() refuses.
std::unique_ptr<CommHook> make_comm_hook(World& world, const CommHookConfig& config,
                                         const std::vector<GradientShape>& parameters = {});

}  // namespace lockstep
