#include "optim/adam.h"

#include <ATen/record_function.h>

#include <cmath>

#include "kernels/adam.h"

namespace lockstep {

void AdamConfig::describe(Fields& f) {
  f("lr", &peak_lr, Above{0}, "learning rate; times the schedule's value");
  f("beta1", &beta1, Between{0, 1}, "decay of the first moment");
  f("beta2", &beta2, Between{0, 1}, "decay of the second moment");
  f("epsilon", &epsilon, Above{0}, "added to the root of the second moment");
  f("weight_decay", &weight_decay, AtLeast{0}, "pull of the weights towards zero");
}

std::unique_ptr<Optimizer> AdamConfig::make(const FlatArrays& arrays) const {
  return std::make_unique<Adam>(*this, arrays);
}

std::unique_ptr<OptimizerConfig> make_adam_config() { return std::make_unique<AdamConfig>(false); }
std::unique_ptr<OptimizerConfig> make_adamw_config() { return std::make_unique<AdamConfig>(true); }

Adam::Adam(const AdamConfig& config, const FlatArrays& arrays)
    : config_(config),
      arrays_(arrays),
      first_moment_(torch::zeros_like(arrays.values)),
      second_moment_(torch::zeros_like(arrays.values)) {}

std::vector<std::pair<std::string, torch::Tensor>> Adam::state() {
  return {{"first_moment", first_moment_}, {"second_moment", second_moment_}};
}

namespace {

float* data(const torch::Tensor& t) { return t.defined() ? t.mutable_data_ptr<float>() : nullptr; }

}  // namespace

void Adam::step(const StepSize& size) {
  torch::NoGradGuard no_grad;
  RECORD_FUNCTION("lockstep::adam", {});
  ++steps_done;
  if (!arrays_.values.is_cpu()) {
    plain_step(size);
    return;
  }
  const torch::Tensor& low = arrays_.low;
  AdamArrays arrays{.value = data(arrays_.values),
                    .gradient = data(arrays_.gradients),
                    .m = data(first_moment_),
                    .v = data(second_moment_),
                    .low = low.defined() ? static_cast<Bf16*>(low.mutable_data_ptr()) : nullptr,
                    .average = data(arrays_.average)};
  AdamStep step{.step = steps_done,
                .lr = size.lr,
                .beta1 = config_.beta1,
                .beta2 = config_.beta2,
                .epsilon = config_.epsilon,
                .weight_decay = config_.weight_decay,
                .decoupled = config_.decoupled,
                .gradient_scale = size.gradient_scale,
                .average_decay = size.average_decay};
  adam_step(arrays, step, 0, arrays_.values.numel());
}

// The same with libtorch operations, for devices without the fused pass.
void Adam::plain_step(const StepSize& size) {
  auto t = static_cast<double>(steps_done);
  double correction1 = 1 - std::pow(config_.beta1, t);
  double correction2 = 1 - std::pow(config_.beta2, t);
  torch::Tensor& value = arrays_.values;
  torch::Tensor& gradient = arrays_.gradients;
  gradient.mul_(size.gradient_scale);
  if (config_.weight_decay > 0) {
    if (config_.decoupled) {
      value.mul_(1 - size.lr * config_.weight_decay);
    } else {
      gradient.add_(value, config_.weight_decay);
    }
  }
  first_moment_.lerp_(gradient, 1 - config_.beta1);
  second_moment_.mul_(config_.beta2).addcmul_(gradient, gradient, 1 - config_.beta2);
  torch::Tensor denominator =
      second_moment_.sqrt().div_(std::sqrt(correction2)).add_(config_.epsilon);
  value.addcdiv_(first_moment_, denominator, -size.lr / correction1);
  gradient.zero_();
  if (arrays_.low.defined()) arrays_.low.copy_(value);
  if (arrays_.average.defined()) arrays_.average.lerp_(value, 1 - size.average_decay);
}

double euclidean_norm(const torch::Tensor& flat) {
  RECORD_FUNCTION("lockstep::euclidean_norm", {});
  if (!flat.is_cpu()) return flat.norm().item<double>();
  return std::sqrt(sum_of_squares(flat.const_data_ptr<float>(), flat.numel()));
}

}  // namespace lockstep
