#include "dist/gradients/comm_hooks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "dist/gradients/bf16_hook.h"
#include "dist/gradients/fp16_hook.h"
#include "dist/gradients/powersgd_hook.h"

namespace lockstep {
namespace {

class AllReduceHook final : public CommHook {
 public:
  explicit AllReduceHook(World& world) : world_(world) {}
  Completion start(const GradientBucket& bucket) override {
    return world_.start_all_reduce_sum(
        bucket.gradients,
        fmt::format("all-reduce of gradient bucket {}{}", bucket.index, bucket.part));
  }

 private:
  World& world_;
};

Catalogue<CommHookFactory> list_of_hooks() {
  using Context = const HookContext&;
  using Next = std::unique_ptr<CommHook>;
  Catalogue<CommHookFactory> r("comm hook");
  r.add(
      "none", [](Context, Next next) { return next; }, "sums as they are, in fp32");
  r.add(
      "bf16", [](Context, Next next) { return make_bf16_hook(std::move(next)); },
      "half the bytes on the wire; gradients and sums rounded to bf16");
  r.add(
      "fp16", [](Context, Next next) { return make_fp16_hook(std::move(next)); },
      "half the bytes on the wire; 3 more bits than bf16, and a second sum after an overflow");
  r.add(
      "powersgd",
      [](Context context, Next next) { return make_powersgd_hook(context, std::move(next)); },
      "matrices as products of two thin ones: a few per cent of the bytes");
  return r;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

const Catalogue<CommHookFactory>& comm_hooks() {
  static const Catalogue<CommHookFactory> list = list_of_hooks();
  return list;
}

void CommHookConfig::describe(Fields& f) {
  f("hook", &hook, Any{},
    "what is done to gradients on the wire: " + join(comm_hooks().names(), ", ") +
        ", or several joined by + in the order in which gradients pass them");
}

std::vector<std::string> CommHookConfig::names() const { return split(hook, '+'); }

std::string CommHookConfig::check() const {
  const std::vector<std::string> all = names();
  for (const std::string& name : all) {
    if (comm_hooks().find(name) == nullptr) return comm_hooks().unknown(name);
    if (std::count(all.begin(), all.end(), name) > 1) return fmt::format("{} twice", name);
  }
  if (all.empty()) return comm_hooks().unknown("");
  if (all.size() > 1 && has(all, "none")) return "none beside other hooks";
  if (has(all, "bf16") && has(all, "fp16")) return "bf16 and fp16: one 16-bit format is enough";
  if (has(all, "powersgd") && all.front() != "powersgd") {
    return fmt::format("powersgd takes fp32 gradients and comes first: powersgd+{}", all.front());
  }
  return "";
}

double CommHookConfig::message_bytes(const std::vector<GradientShape>& parameters) const {
  const std::vector<std::string> all = names();
  auto uses = [&](const char* name) {
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  double numbers = 0;
  if (uses("powersgd")) {
    numbers = static_cast<double>(powersgd.numbers_sent(parameters));
  } else {
    for (const GradientShape& p : parameters) numbers += static_cast<double>(p.numel());
  }
  return numbers * (uses("bf16") || uses("fp16") ? 2 : 4);
}

bool CommHookConfig::needs_whole_parameters() const { return has(names(), "powersgd"); }

std::unique_ptr<CommHook> make_comm_hook(World& world, const CommHookConfig& config,
                                         const std::vector<GradientShape>& parameters) {
  const std::string wrong = config.check();
  if (!wrong.empty()) throw ConfigError("comm.hook: {}", wrong);
  std::unique_ptr<CommHook> hook = std::make_unique<AllReduceHook>(world);
  const std::vector<std::string> names = config.names();
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    hook = comm_hooks().get(*name)({world, config, parameters}, std::move(hook));
  }
  return hook;
}

}  // namespace lockstep
