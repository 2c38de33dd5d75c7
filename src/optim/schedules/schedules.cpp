#include "optim/schedules/schedules.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "optim/schedules/one_cycle.h"

namespace lockstep {

namespace {

// Returns 1/w, 2/w, ... 1, 1, 1; warmup_steps = 0 means no warm-up.
double warm_up(int64_t step, const ScheduleConfig& config) {
  if (config.warmup_steps == 0) return 1;
  return std::min(1.0, static_cast<double>(step) / static_cast<double>(config.warmup_steps));
}

double least(const ScheduleConfig& config, const ScheduleContext& context) {
  return config.min_lr / context.lr;
}

struct Decay {
  int64_t begin, steps;
};

// `warms_up`: the decay begins after the warm-up.
Decay decay_of(const ScheduleConfig& config, const ScheduleContext& context, bool warms_up) {
  const int64_t begin =
      std::max(warms_up ? config.warmup_steps : int64_t{0}, config.begin_decay_at);
  const int64_t left = std::max<int64_t>(1, context.total_steps - begin);
  return {begin, config.decay_steps > 0 ? config.decay_steps : left};
}

// Returns the share of the decay that is done: 0 at the end of the warm-up, 1 at the last step.
double progress(int64_t step, const ScheduleConfig& config, const ScheduleContext& context) {
  const Decay decay = decay_of(config, context, true);
  const double behind = static_cast<double>(step - decay.begin) / static_cast<double>(decay.steps);
  return std::clamp(behind, 0.0, 1.0);
}

double fixed(int64_t, const ScheduleConfig&, const ScheduleContext&) { return 1; }

double constant(int64_t step, const ScheduleConfig& config, const ScheduleContext&) {
  return warm_up(step, config);
}

double inverse_sqrt(int64_t step, const ScheduleConfig& config, const ScheduleContext&) {
  auto warm = static_cast<double>(std::max<int64_t>(1, config.warmup_steps));
  auto s = static_cast<double>(step);
  return std::min(s / warm, std::max(std::sqrt(warm / s), config.floor));
}

double noam(int64_t step, const ScheduleConfig& config, const ScheduleContext& context) {
  auto warm = static_cast<double>(std::max<int64_t>(1, config.warmup_steps));
  auto s = static_cast<double>(step);
  const double peak = std::pow(warm, -0.5);
  const double value =
      std::pow(static_cast<double>(context.width), -0.5) *
      std::min(std::max(std::pow(s, -0.5), config.floor * peak), s * std::pow(warm, -1.5));
  return config.max_lr > 0 ? std::min(value, config.max_lr / context.lr) : value;
}

double linear(int64_t step, const ScheduleConfig& config, const ScheduleContext& context) {
  double left = 1 - progress(step, config, context);
  return warm_up(step, config) * (config.floor + (1 - config.floor) * left);
}

double hf_linear(int64_t step, const ScheduleConfig& config, const ScheduleContext& context) {
  const auto total = static_cast<double>(context.total_steps), done = static_cast<double>(step - 1);
  const double warm = config.num_warmup_steps > 0 ? static_cast<double>(config.num_warmup_steps)
                                                  : std::ceil(total * config.warmup_ratio);
  if (done < warm) return done / warm;
  return std::max(0.0, total - done) / std::max(1.0, total - warm);
}

double cosine(int64_t step, const ScheduleConfig& config, const ScheduleContext& context) {
  double left = 0.5 * (1 + std::cos(std::numbers::pi * progress(step, config, context)));
  return warm_up(step, config) * (config.floor + (1 - config.floor) * left);
}

double piecewise(int64_t step, const ScheduleConfig& config, const ScheduleContext&) {
  double value = 1;
  for (std::size_t i = 0; i < config.boundaries.size(); ++i) {
    if (static_cast<double>(step - 1) > config.boundaries[i]) value = config.values.at(i);
  }
  return value;
}

double exponential(int64_t step, const ScheduleConfig& config, const ScheduleContext& context) {
  const Decay decay = decay_of(config, context, false);
  double value = 1;
  if (step - 1 >= decay.begin) {
    double times = static_cast<double>(step - 1 - decay.begin) / static_cast<double>(decay.steps);
    if (config.staircase) times = std::floor(times);
    value = std::pow(config.decay_rate, times);
  }
  return std::max(least(config, context), value);
}

double polynomial(int64_t step, const ScheduleConfig& config, const ScheduleContext& context) {
  const Decay decay = decay_of(config, context, true);
  if (step - 1 < decay.begin) return warm_up(step, config);
  const auto behind = static_cast<double>(std::min(step - 1 - decay.begin, decay.steps));
  const double left = std::pow(1 - behind / static_cast<double>(decay.steps), config.power);
  return (1 - least(config, context)) * left + least(config, context);
}

double inverse_polynomial(int64_t step, const ScheduleConfig& config,
                          const ScheduleContext& context) {
  const Decay decay = decay_of(config, context, true);
  if (step - 1 < decay.begin) return warm_up(step, config);
  const double end = std::min(1.0, std::max(config.min_lr, 1e-8) / context.lr);
  const double rate = (std::pow(1 / end, 1 / config.power) - 1) / static_cast<double>(decay.steps);
  const auto behind = static_cast<double>(step - 1 - decay.begin);
  return std::max(end, std::pow(1 + rate * behind, -config.power));
}

bool uses(const ScheduleConfig& config, const char* key) {
  const Schedule* schedule = schedules().find(config.name);
  if (schedule == nullptr) return true;  // reported elsewhere; here all keys count as known
  return std::find(schedule->keys.begin(), schedule->keys.end(), key) != schedule->keys.end();
}

}  // namespace

const Catalogue<Schedule>& schedules() {
  static const Catalogue<Schedule> catalogue = [] {
    Catalogue<Schedule> c("schedule");
    c.add("noam", {noam, {"warmup_steps", "floor", "max_lr"}},
          "width^-0.5 * min(step^-0.5, step * warmup^-1.5)");
    c.add("inverse_sqrt", {inverse_sqrt, {"warmup_steps", "floor"}},
          "linear warm-up to 1, then (warmup / step)^0.5");
    c.add("constant", {constant, {"warmup_steps", "floor"}}, "linear warm-up to 1, then 1");
    c.add("fixed", {fixed, {}}, "1 from the first step on");
    c.add("linear", {linear, {"warmup_steps", "floor", "decay_steps", "begin_decay_at"}},
          "linear warm-up to 1, then a line to the floor at the last step");
    c.add("hf_linear", {hf_linear, {"num_warmup_steps", "warmup_ratio"}},
          "warm-up from 0 and a line to 0 after the last step, as transformers' Trainer");
    c.add("cosine", {cosine, {"warmup_steps", "floor", "decay_steps", "begin_decay_at"}},
          "linear warm-up to 1, then half a cosine to the floor");
    c.add("piecewise", {piecewise, {"boundaries", "values"}}, "constants between boundaries");
    c.add("exp",
          {exponential, {"decay_steps", "decay_rate", "staircase", "begin_decay_at", "min_lr"}},
          "decay_rate every decay_steps");
    c.add("poly",
          {polynomial, {"warmup_steps", "decay_steps", "power", "begin_decay_at", "min_lr"}},
          "linear warm-up to 1, then a power of what is left");
    c.add(
        "inv_poly",
        {inverse_polynomial, {"warmup_steps", "decay_steps", "power", "begin_decay_at", "min_lr"}},
        "linear warm-up to 1, then (1 + r * step)^-power to min_lr");
    c.add("one_cycle",
          {one_cycle_value,
           {"pct_start", "anneal_strategy", "div_factor", "final_div_factor", "three_phase",
            "cycle_momentum", "base_momentum", "max_momentum"}},
          "up, down and far down over the whole run, as torch's OneCycleLR");
    return c;
  }();
  return catalogue;
}

void ScheduleConfig::describe(Fields& f) {
  f("name", &name, OneOf{schedules().names()}, "how the learning rate changes; times optimizer.lr");
  auto field = [&](const char* key, FieldRef value, const Rule& rule, const char* help) {
    if (uses(*this, key)) f(key, value, rule, help);
  };
  field("warmup_steps", &warmup_steps, AtLeast{0}, "steps until the peak");
  field("floor", &floor, Between{0, 1},
        "no value below it after the warm-up, as a share of the peak");
  field("max_lr", &max_lr, AtLeast{0}, "no learning rate above it; 0: no limit");
  field("decay_steps", &decay_steps, AtLeast{0}, "steps of the decay; 0: to the end of the run");
  field("begin_decay_at", &begin_decay_at, AtLeast{0}, "the decay begins after this step");
  field("power", &power, Above{0}, "of the polynomial");
  field("decay_rate", &decay_rate, Above{0}, "factor after decay_steps");
  field("staircase", &staircase, Any{}, "the factor is applied at once after every decay_steps");
  field("num_warmup_steps", &num_warmup_steps, AtLeast{0}, "steps until the peak; 0: warmup_ratio");
  field("warmup_ratio", &warmup_ratio, Between{0, 1}, "share of the run until the peak");
  field("min_lr", &min_lr, AtLeast{0}, "the learning rate never falls below it");
  field("boundaries", &boundaries, AtLeast{0}, "steps after which the next of values holds");
  field("values", &values, AtLeast{0}, "one for each boundary, times optimizer.lr; 1 before them");
  field("pct_start", &pct_start, Between{0, 1}, "share of the run that the learning rate rises");
  field("anneal_strategy", &anneal_strategy, OneOf{{"cos", "linear"}}, "shape of rise and fall");
  field("div_factor", &div_factor, Above{0}, "peak over first learning rate");
  field("final_div_factor", &final_div_factor, Above{0}, "first over last learning rate");
  field("three_phase", &three_phase, Any{},
        "down to the first rate as fast as up, then to the last");
  field("cycle_momentum", &cycle_momentum, Any{},
        "momentum (Adam: beta1) goes from max_momentum to base_momentum and back");
  field("base_momentum", &base_momentum, Between{0, 1}, "at the peak of the learning rate");
  field("max_momentum", &max_momentum, Between{0, 1}, "at the first and last step");
}

std::string ScheduleConfig::check() const {
  if (name != "piecewise") return "";
  if (boundaries.size() != values.size()) {
    return fmt::format("expected as many values as boundaries ({}), got {}", boundaries.size(),
                       values.size());
  }
  if (!std::is_sorted(boundaries.begin(), boundaries.end())) return "expected rising boundaries";
  return "";
}

double schedule_value(int64_t step, const ScheduleConfig& config, const ScheduleContext& context) {
  return schedules().get(config.name).value(step, config, context);
}

std::optional<double> schedule_momentum(int64_t step, const ScheduleConfig& config,
                                        const ScheduleContext& context) {
  if (config.name != "one_cycle" || !config.cycle_momentum) return std::nullopt;
  return one_cycle_momentum(step, config, context);
}

}  // namespace lockstep
