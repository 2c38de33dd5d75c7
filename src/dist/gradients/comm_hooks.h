// Comm hooks determine what happens to a bucket of gradients between backward pass and
// optimizer, such as compression. Hooks are decorators: each wraps the next, and the last
// is the plain all-reduce.
//
// "powersgd+bf16" names them in the order in which gradients pass them: PowerSGD computes small
// factors, which are then sent as bf16. docs/launch.md#slow-links says which to use when.
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
  int index = 0;            // in the order in which buckets start, the same on all ranks
  torch::Tensor gradients;  // [numel], a contiguous slice of the flat gradients
  int64_t begin = 0;        // first element of the bucket in the flat gradients
  // What the sum will be divided by: targets of the step times loss scale. The same on all ranks.
  double unit = 1;
  const char* part = "";  // which part of the bucket a hook sends, for errors: ", factor P"
};

// An array that a hook keeps from step to step, different on every rank. Shares its memory with the
// hook's own.
struct HookArray {
  std::string name;
  torch::Tensor data;  // flat
};

class CommHook {
 public:
  virtual ~CommHook() = default;
  // Starts replacing bucket.gradients by their sum over all ranks, or by the hook's approximation
  // of it; the completion waits until that is done. Completions are called in the order of the
  // starts, after the last bucket of the step has started. A gradient that is not finite on one
  // rank becomes not finite on all.
  virtual Completion start(const GradientBucket& bucket) = 0;
  // Returns what a run needs to resume bit for bit, in a fixed order; nothing by default.
  virtual std::vector<HookArray> state() { return {}; }
  // Called after a checkpoint has overwritten the arrays of state().
  virtual void restored() {}
};

struct CommHookConfig {
  std::string hook = "none";
  PowerSgdConfig powersgd = {};

  void describe(Fields& f);                // declares the key "hook"
  std::vector<std::string> names() const;  // `hook` split at +
  std::string check() const;               // empty, or why the hooks cannot stand in this order
  // Whether a hook needs every parameter to lie in one bucket.
  bool needs_whole_parameters() const;
  // Returns the bytes of one sum's messages, counted once: of the flat gradients as the hooks leave
  // them. `parameters` determine the sizes of PowerSGD's factors.
  double message_bytes(const std::vector<GradientShape>& parameters) const;
};

struct HookContext {
  World& world;
  const CommHookConfig& config;
  const std::vector<GradientShape>& parameters;
};

using CommHookFactory =
    std::function<std::unique_ptr<CommHook>(const HookContext&, std::unique_ptr<CommHook> next)>;

// All hooks: "none", "bf16", "fp16", "powersgd".
const Catalogue<CommHookFactory>& comm_hooks();

// Wraps the plain all-reduce in the named hooks; `world` must outlive them. `parameters`
// describes the flat gradients, ascending; only powersgd needs it. Throws ConfigError
// for what check() refuses.
std::unique_ptr<CommHook> make_comm_hook(World& world, const CommHookConfig& config,
                                         const std::vector<GradientShape>& parameters = {});

}  // namespace lockstep
