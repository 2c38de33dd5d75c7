#include "dist/comm_hooks.h"

#include <fmt/format.h>

#include <utility>

#include "dist/bf16_hook.h"

namespace lockstep {
namespace {

class AllReduceHook final : public CommHook {
 public:
  explicit AllReduceHook(World& world) : world_(world) {}
  Completion start(const GradientBucket& bucket) override {
    return world_.start_all_reduce_sum(
        bucket.gradients, fmt::format("all-reduce of gradient bucket {}", bucket.index));
  }

 private:
  World& world_;
};

Catalogue<CommHookFactory> list_of_hooks() {
  using Next = std::unique_ptr<CommHook>;
  Catalogue<CommHookFactory> r("comm hook");
  r.add(
      "none", [](World&, Next next) { return next; }, "sums as they are, in fp32");
  r.add(
      "bf16", [](World&, Next next) { return make_bf16_hook(std::move(next)); },
      "half the bytes on the wire; gradients and sums rounded to bf16");
  return r;
}

}  // namespace

const Catalogue<CommHookFactory>& comm_hooks() {
  static const Catalogue<CommHookFactory> list = list_of_hooks();
  return list;
}

std::unique_ptr<CommHook> make_comm_hook(World& world, const std::string& name) {
  return comm_hooks().get(name)(world, std::make_unique<AllReduceHook>(world));
}

}  // namespace lockstep
