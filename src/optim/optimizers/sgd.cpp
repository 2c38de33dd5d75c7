#include "optim/optimizers/sgd.h"

#include <ATen/record_function.h>

#include "gpu/gpu_kernels.h"

namespace lockstep {

void SgdConfig::describe(Fields& f) {
  f("lr", &peak_lr, Above{0}, "learning rate; times the schedule's value");
  f("momentum", &momentum, Between{0, 1}, "decay of the sum of the gradients; 0: none is kept");
  f("dampening", &dampening, Between{0, 1}, "share of a gradient that the momentum leaves out");
  f("nesterov", &nesterov, Any{}, "looks ahead along the momentum");
  f("weight_decay", &weight_decay, AtLeast{0}, "times the weight is added to its gradient");
}

std::unique_ptr<Optimizer> SgdConfig::make(const FlatArrays& arrays) const {
  return std::make_unique<Sgd>(*this, arrays);
}

std::unique_ptr<OptimizerConfig> make_sgd_config() { return std::make_unique<SgdConfig>(); }

Sgd::Sgd(const SgdConfig& config, const FlatArrays& arrays) : config_(config), arrays_(arrays) {
  if (config.momentum > 0) momentum_ = torch::zeros_like(arrays.values);
}

std::vector<StateArray> Sgd::state() {
  if (!momentum_.defined()) return {};
  return {{"momentum", momentum_}};
}

void Sgd::step(const StepSize& size) {
  torch::NoGradGuard no_grad;
  RECORD_FUNCTION("lockstep::sgd", {});
  MomentumStep step;
  step.lr = size.lr;
  step.average_decay = size.average_decay;
  step.decay = size.momentum.value_or(config_.momentum);
  step.share = steps_done == 0 ? 1 : 1 - config_.dampening;
  step.nesterov = config_.nesterov;
  ++steps_done;
  for (const detail::UpdateRun& run : detail::update_runs(arrays_, size)) {
    step.gradient_scale = run.gradient_scale;
    step.weight_decay = run.decays ? config_.weight_decay : 0;
    detail::momentum_update(arrays_, momentum_, step, {run.begin, run.end});
  }
}

namespace detail {

void momentum_update(const FlatArrays& arrays, const torch::Tensor& momentum,
                     const MomentumStep& step, std::pair<int64_t, int64_t> range) {
  const UpdateArrays raw = update_arrays(arrays, momentum, {});
  if (arrays.values.is_cpu()) return momentum_step(raw, step, range.first, range.second);
  if (const GpuKernels* gpu = gpu_kernels()) {
    return gpu->momentum({momentum_args(raw, step), range.first}, range.second - range.first);
  }
  PlainSlice s(arrays, momentum, {}, range);
  s.begin(step);
  if (!s.m.defined()) {
    s.value.add_(s.gradient, -step.lr);
  } else {
    s.m.mul_(step.decay).add_(s.gradient, step.share);
    if (step.nesterov) s.value.add_(s.gradient, -step.lr);
    s.value.add_(s.m, -step.lr * (step.nesterov ? step.decay : 1));
  }
  s.end(step);
}

}  // namespace detail
}  // namespace lockstep
