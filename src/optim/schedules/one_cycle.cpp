#include "optim/schedules/one_cycle.h"

#include <array>
#include <cmath>
#include <numbers>

namespace lockstep {

namespace {

struct Phase {
  double last_step;  // in torch's steps, which count from 0; may be fractional
  double lr_from, lr_to, momentum_from, momentum_to;
};

struct Place {
  Phase phase;
  double progress;  // from 0 to 1 in the phase
};

Place find_place(int64_t step, const ScheduleConfig& c, int64_t total_steps) {
  const double initial = 1 / c.div_factor, lowest = initial / c.final_div_factor;
  const auto total = static_cast<double>(total_steps);
  const double low = c.base_momentum, high = c.max_momentum;
  std::array<Phase, 3> phases;
  std::size_t count = 2;
  phases[0] = {c.pct_start * total - 1, initial, 1, high, low};
  if (c.three_phase) {
    phases[1] = {2 * c.pct_start * total - 2, 1, initial, low, high};
    phases[2] = {total - 1, initial, lowest, high, high};
    count = 3;
  } else {
    phases[1] = {total - 1, 1, lowest, low, high};
  }
  const auto s = static_cast<double>(step - 1);
  double start = 0;
  std::size_t i = 0;
  for (; i + 1 < count && s > phases[i].last_step; ++i) start = phases[i].last_step;
  return {phases[i], (s - start) / (phases[i].last_step - start)};
}

double anneal(const std::string& strategy, double from, double to, double progress) {
  if (strategy == "linear") return (to - from) * progress + from;
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * progress));
}

}  // namespace

double one_cycle_value(int64_t step, const ScheduleConfig& config, const ScheduleContext& context) {
  const auto [phase, progress] = find_place(step, config, context.total_steps);
  return anneal(config.anneal_strategy, phase.lr_from, phase.lr_to, progress);
}

double one_cycle_momentum(int64_t step, const ScheduleConfig& config,
                          const ScheduleContext& context) {
  const auto [phase, progress] = find_place(step, config, context.total_steps);
  return anneal(config.anneal_strategy, phase.momentum_from, phase.momentum_to, progress);
}

}  // namespace lockstep
