#include "optim/optimizers/loss_scaler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep {

namespace {

struct Policy {
  const char* name;
  double initial, minimum, maximum;
};

const double kNone = std::numeric_limits<double>::max();
const double kSmallest = std::ldexp(1.0, -24);  // below it every fp16 gradient is 0
const Policy kPolicies[] = {
    {"backoff", 16384, 1, 16384},       {"apex", 65536, kSmallest, 16777216},
    {"torch", 65536, kSmallest, kNone}, {"log_max", 1, 1, 16384},
    {"static", 1024, 1024, 1024},
};
constexpr double kStaticPatience = 10;

}  // namespace

void LossScaleConfig::describe(Fields& f) {
  std::vector<std::string> names;
  for (const Policy& policy : kPolicies) names.push_back(policy.name);
  f("name", &name, OneOf{names}, "how the factor of fp16 gradients is found; only with fp16");
  f("initial", &initial, AtLeast{0}, "first factor; 0: the policy's own");
  f("minimum", &minimum, AtLeast{0}, "an overflow at it ends fp16: fp32 goes on; 0: the policy's");
  f("maximum", &maximum, AtLeast{0}, "largest factor; 0: the policy's own");
  f("window", &window, AtLeast{0}, "steps without overflow before it grows; 0: 2000");
  f("factor", &factor, Above{1}, "how much it shrinks and grows");
  f("log_max", &log_max, Any{}, "log_max: the largest gradient stays below 2 to this power");
  f("beta1", &beta1, Between{0, 1}, "log_max: decay of the mean");
  f("beta2", &beta2, Between{0, 1}, "log_max: decay of the deviation");
  f("overflow_deviations", &overflow_deviations, AtLeast{0},
    "log_max: how many deviations above the mean still fit");
}

LossScaler::LossScaler(const LossScaleConfig& config) : config_(config) {
  auto found = std::find_if(std::begin(kPolicies), std::end(kPolicies),
                            [&](const Policy& policy) { return config.name == policy.name; });
  const Policy& policy = found == std::end(kPolicies) ? kPolicies[0] : *found;
  auto choose = [](double& value, double own) { value = value == 0 ? own : value; };
  choose(config_.initial, policy.initial);
  const bool is_static = config_.name == "static";
  choose(config_.minimum, is_static ? config_.initial : policy.minimum);
  choose(config_.maximum, is_static ? config_.initial : policy.maximum);
  config_.maximum = std::max(config_.maximum, config_.minimum);
  if (config_.window == 0) config_.window = 2000;
  scale_ = std::clamp(config_.initial, config_.minimum, config_.maximum);
}

bool LossScaler::update(bool overflowed, double largest) {
  overflows_in_row_ = overflowed ? overflows_in_row_ + 1 : 0;
  const bool lowest = scale_ <= config_.minimum;
  if (config_.name == "static") return overflows_in_row_ < kStaticPatience;
  if (config_.name == "log_max") {
    follow_largest(overflowed, largest);
    return !(overflowed && lowest);
  }
  if (overflowed) {
    clean_steps_ = 0;
    scale_ = std::max(config_.minimum, scale_ / config_.factor);
    return !lowest;
  }
  clean_steps_ += 1;
  if (clean_steps_ >= static_cast<double>(config_.window)) {
    clean_steps_ = 0;
    scale_ = std::min(config_.maximum, scale_ * config_.factor);
  }
  return true;
}

// At an overflow the gradient times the scale was 2^16 or more; it is taken as 2^(log_max + 1). In
// the source an overflow counts as log2 = 2^16 instead, a number that the means would not forget.
void LossScaler::follow_largest(bool overflowed, double largest) {
  const double x = overflowed ? config_.log_max - std::log2(scale_) + 1
                              : std::log2(std::max(largest, std::ldexp(1.0, -126)));
  fast_ = config_.beta1 * fast_ + (1 - config_.beta1) * x;
  slow_ = config_.beta2 * slow_ + (1 - config_.beta2) * x;
  square_ = config_.beta2 * square_ + (1 - config_.beta2) * x * x;
  lack_fast_ *= config_.beta1;
  lack_slow_ *= config_.beta2;
  const double mean = fast_ / (1 - lack_fast_), slow = slow_ / (1 - lack_slow_);
  const double deviation = std::sqrt(std::max(0.0, square_ / (1 - lack_slow_) - slow * slow));
  const double highest = mean + config_.overflow_deviations * deviation;
  double scale = std::exp2(config_.log_max - highest);
  if (overflowed) scale = std::min(scale, scale_ / config_.factor);  // else it might not fall
  scale_ = std::clamp(scale, config_.minimum, config_.maximum);
}

std::map<std::string, double> LossScaler::state() const {
  return {{"scale", scale_},
          {"clean_steps", clean_steps_},
          {"overflows_in_row", overflows_in_row_},
          {"fast", fast_},
          {"slow", slow_},
          {"square", square_},
          {"lack_fast", lack_fast_},
          {"lack_slow", lack_slow_}};
}

void LossScaler::set_state(const std::map<std::string, double>& state) {
  auto take = [&](const char* name, double& value) {
    auto found = state.find(name);
    if (found != state.end()) value = found->second;
  };
  take("scale", scale_);
  take("clean_steps", clean_steps_);
  take("overflows_in_row", overflows_in_row_);
  take("fast", fast_);
  take("slow", slow_);
  take("square", square_);
  take("lack_fast", lack_fast_);
  take("lack_slow", lack_slow_);
}

}  // namespace lockstep
