#include "dist/traffic.h"

#include <algorithm>

namespace lockstep {
namespace {

bool uses(const CommPlan& plan, const char* name) {
  const std::vector<std::string> names = plan.hook.names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

double message_bytes(const CommPlan& plan) {
  double numbers = 0;
  if (uses(plan, "powersgd")) {
    numbers = static_cast<double>(plan.hook.powersgd.numbers_sent(plan.parameters));
  } else {
    for (const GradientShape& p : plan.parameters) numbers += static_cast<double>(p.numel());
  }
  return numbers * (uses(plan, "bf16") || uses(plan, "fp16") ? 2 : 4);
}

double bytes_per_step(const CommPlan& plan) {
  if (plan.machines < 2) return 0;
  const double n = plan.machines;
  return message_bytes(plan) * 2 * (n - 1) / n / plan.steps_between_sums;
}

double delays_per_sum(const CommPlan& plan) {
  if (plan.machines < 2) return 0;
  // Two machines exchange at once; more add up slices first and then hand them round.
  const double one = plan.machines == 2 ? 1 : 2;
  return uses(plan, "powersgd") ? 2 * one : one;
}

}  // namespace lockstep
