#include "optim/optimizers/adam.h"

#include <ATen/record_function.h>

#include <cmath>

#include "gpu/gpu_kernels.h"

namespace lockstep {

void AdamConfig::describe(Fields& f) {
  f("lr", &peak_lr, Above{0}, "learning rate; times the schedule's value");
  f("beta1", &beta1, Between{0, 1}, "decay of the first moment");
  f("beta2", &beta2, Between{0, 1}, "decay of the second moment");
  f("epsilon", &epsilon, Above{0}, "added to the root of the second moment");
  f("corrected_epsilon", &corrected_epsilon, Any{},
    "true: added to the bias-corrected root (torch); false: to the root itself (TensorFlow)");
  f("weight_decay", &weight_decay, AtLeast{0}, "pull of the weights towards zero");
}

std::unique_ptr<Optimizer> AdamConfig::make(const FlatArrays& arrays) const {
  return std::make_unique<Adam>(*this, arrays);
}

std::unique_ptr<OptimizerConfig> make_adam_config() {
  return std::make_unique<AdamConfig>(AdamKind::kAdam);
}
std::unique_ptr<OptimizerConfig> make_adamw_config() {
  return std::make_unique<AdamConfig>(AdamKind::kAdamW);
}
std::unique_ptr<OptimizerConfig> make_lazy_adam_config() {
  return std::make_unique<AdamConfig>(AdamKind::kLazyAdam);
}

Adam::Adam(const AdamConfig& config, const FlatArrays& arrays)
    : config_(config),
      arrays_(arrays),
      first_moment_(torch::zeros_like(arrays.values)),
      second_moment_(torch::zeros_like(arrays.values)) {}

std::vector<StateArray> Adam::state() {
  return {{"first_moment", first_moment_}, {"second_moment", second_moment_}};
}

AdamStep Adam::parameters(const StepSize& size) const {
  AdamStep step;
  step.lr = size.lr;
  step.weight_decay = config_.weight_decay;
  step.decoupled = config_.kind == AdamKind::kAdamW;
  step.average_decay = size.average_decay;
  step.step = steps_done;
  step.beta1 = size.momentum.value_or(config_.beta1);
  step.beta2 = config_.beta2;
  step.epsilon = config_.epsilon;
  step.corrected_epsilon = config_.corrected_epsilon;
  return step;
}

void Adam::step(const StepSize& size) {
  torch::NoGradGuard no_grad;
  RECORD_FUNCTION("lockstep::adam", {});
  ++steps_done;
  AdamStep step = parameters(size);
  if (config_.kind == AdamKind::kLazyAdam) {
    lazy_step(step, size);
    return;
  }
  for (const detail::UpdateRun& run : detail::update_runs(arrays_, size)) {
    step.gradient_scale = run.gradient_scale;
    step.weight_decay = run.decays ? config_.weight_decay : 0;
    dense_step(step, run.begin, run.end);
  }
}

void Adam::dense_step(const AdamStep& step, int64_t begin, int64_t end) {
  const UpdateArrays arrays = detail::update_arrays(arrays_, first_moment_, second_moment_);
  if (arrays_.values.is_cpu()) {
    adam_step(arrays, step, begin, end);
  } else if (const GpuKernels* gpu = gpu_kernels()) {
    gpu->adam({adam_args(arrays, step), begin}, end - begin);
  } else {
    plain_step(step, {arrays_, first_moment_, second_moment_, {begin, end}});
  }
}

void Adam::lazy_step(const AdamStep& dense, const StepSize& size) {
  for (std::size_t i = 0; i < arrays_.layers.size(); ++i) {
    const LayerSlice& layer = arrays_.layers[i];
    if (layer.begin == layer.end) continue;
    AdamStep step = dense;
    step.gradient_scale =
        size.gradient_scale * (size.layer_scales.empty() ? 1 : size.layer_scales[i]);
    if (!layer.decays) step.weight_decay = 0;
    if (layer.row_width == 0) {
      dense_step(step, layer.begin, layer.end);
    } else {
      table_step(step, layer);
    }
  }
}

void Adam::table_step(const AdamStep& step, const LayerSlice& layer) const {
  const UpdateArrays arrays = detail::update_arrays(arrays_, first_moment_, second_moment_);
  const auto* gradient = layer.gradient.const_data_ptr<float>();
  const int64_t width = layer.row_width;
  if (arrays_.values.is_cpu()) {
    lazy_adam_step(arrays, step, {gradient, width, layer.first}, layer.begin, layer.end);
  } else if (const GpuKernels* gpu = gpu_kernels()) {
    const int64_t first = layer.first / width;
    const int64_t end = (layer.first + layer.end - layer.begin + width - 1) / width;
    gpu->lazy_adam({adam_args(arrays, step), gradient, width, first, layer.begin - layer.first,
                    layer.begin, layer.end},
                   end - first);
  } else {
    plain_table_step(step, layer);
  }
}

// The same step with libtorch operations, for devices without the fused pass.
void Adam::plain_step(const AdamStep& step, detail::PlainSlice s) const {
  const auto count = static_cast<double>(step.step);
  const double correction1 = 1 - std::pow(step.beta1, count);
  const double root2 = std::sqrt(1 - std::pow(step.beta2, count));
  s.begin(step);
  s.m.lerp_(s.gradient, 1 - step.beta1);
  s.v.mul_(step.beta2).addcmul_(s.gradient, s.gradient, 1 - step.beta2);
  torch::Tensor denominator = s.v.sqrt();
  if (step.corrected_epsilon) denominator.div_(root2);
  denominator.add_(step.epsilon);
  s.value.addcdiv_(s.m, denominator, -step.lr / correction1 * (step.corrected_epsilon ? 1 : root2));
  s.end(step);
}

// Takes a dense step, then restores the unused rows.
void Adam::plain_table_step(const AdamStep& step, const LayerSlice& layer) const {
  const detail::PlainSlice slice(arrays_, first_moment_, second_moment_, {layer.begin, layer.end});
  const torch::Tensor used = layer.gradient.view({-1, layer.row_width})
                                 .ne(0)
                                 .any(1)
                                 .repeat_interleave(layer.row_width)
                                 .narrow(0, layer.first, layer.end - layer.begin);
  const torch::Tensor value = slice.value.clone(), m = slice.m.clone(), v = slice.v.clone();
  detail::PlainSlice without_average = slice;
  without_average.average = torch::Tensor();
  plain_step(step, without_average);
  slice.value.copy_(torch::where(used, slice.value, value));
  slice.m.copy_(torch::where(used, slice.m, m));
  slice.v.copy_(torch::where(used, slice.v, v));
  detail::PlainSlice(slice).end(step);
}

}  // namespace lockstep
