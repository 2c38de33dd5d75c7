#include "optim/schedules.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lockstep {

namespace {

// 1/w, 2/w, ... 1, 1, 1; a warm-up of 0 steps is none.
double warm_up(int64_t step, const ScheduleConfig& config) {
  if (config.warmup_steps == 0) return 1;
  return std::min(1.0, static_cast<double>(step) / static_cast<double>(config.warmup_steps));
}

// Share of the decay that is behind: 0 at the end of the warm-up, 1 at the last step.
double progress(int64_t step, const ScheduleConfig& config, const ScheduleContext& context) {
  auto decay = static_cast<double>(std::max<int64_t>(1, context.total_steps - config.warmup_steps));
  return std::clamp(static_cast<double>(step - config.warmup_steps) / decay, 0.0, 1.0);
}

double constant(int64_t step, const ScheduleConfig& config, const ScheduleContext&) {
  return warm_up(step, config);
}

double inverse_sqrt(int64_t step, const ScheduleConfig& config, const ScheduleContext&) {
  auto warm = static_cast<double>(std::max<int64_t>(1, config.warmup_steps));
  auto s = static_cast<double>(step);
  return std::min(s / warm, std::sqrt(warm / s));
}

double noam(int64_t step, const ScheduleConfig& config, const ScheduleContext& context) {
  auto warm = static_cast<double>(std::max<int64_t>(1, config.warmup_steps));
  auto s = static_cast<double>(step);
  return std::pow(static_cast<double>(context.width), -0.5) *
         std::min(std::pow(s, -0.5), s * std::pow(warm, -1.5));
}

double linear(int64_t step, const ScheduleConfig& config, const ScheduleContext& context) {
  double left = 1 - progress(step, config, context);
  return warm_up(step, config) * (config.floor + (1 - config.floor) * left);
}

double cosine(int64_t step, const ScheduleConfig& config, const ScheduleContext& context) {
  double left = 0.5 * (1 + std::cos(std::numbers::pi * progress(step, config, context)));
  return warm_up(step, config) * (config.floor + (1 - config.floor) * left);
}

}  // namespace

const Catalogue<Schedule>& schedules() {
  static const Catalogue<Schedule> catalogue = [] {
    Catalogue<Schedule> c("schedule");
    c.add("noam", noam, "width^-0.5 * min(step^-0.5, step * warmup^-1.5)");
    c.add("inverse_sqrt", inverse_sqrt, "linear warm-up to 1, then (warmup / step)^0.5");
    c.add("constant", constant, "linear warm-up to 1, then 1");
    c.add("linear", linear, "linear warm-up to 1, then a line to the floor at the last step");
    c.add("cosine", cosine, "linear warm-up to 1, then half a cosine to the floor");
    return c;
  }();
  return catalogue;
}

void ScheduleConfig::describe(Fields& f) {
  f("name", &name, OneOf{schedules().names()}, "how the learning rate changes; times optimizer.lr");
  f("warmup_steps", &warmup_steps, AtLeast{0}, "steps until the peak");
  f("floor", &floor, Between{0, 1}, "last value of linear and cosine, as a share of the peak");
}

double schedule_value(int64_t step, const ScheduleConfig& config, const ScheduleContext& context) {
  return schedules().get(config.name)(step, config, context);
}

}  // namespace lockstep
