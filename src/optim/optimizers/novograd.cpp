#include "optim/optimizers/novograd.h"

#include <ATen/record_function.h>

#include <cmath>

#include "optim/optimizers/sgd.h"

namespace lockstep {

void NovoGradConfig::describe(Fields& f) {
  f("lr", &peak_lr, Above{0}, "learning rate; times the schedule's value");
  f("beta1", &beta1, Between{0, 1}, "decay of the first moment");
  f("beta2", &beta2, Between{0, 1}, "decay of each layer's second moment");
  f("epsilon", &epsilon, Above{0}, "added to the second moment, under the root");
  f("weight_decay", &weight_decay, AtLeast{0}, "times the weight is added to the scaled gradient");
  f("gradient_averaging", &gradient_averaging, Any{},
    "the first moment is a mean of gradients, not a sum that decays");
}

std::unique_ptr<Optimizer> NovoGradConfig::make(const FlatArrays& arrays) const {
  return std::make_unique<NovoGrad>(*this, arrays);
}

std::unique_ptr<OptimizerConfig> make_novograd_config() {
  return std::make_unique<NovoGradConfig>();
}

NovoGrad::NovoGrad(const NovoGradConfig& config, const FlatArrays& arrays)
    : config_(config),
      arrays_(arrays),
      first_moment_(torch::zeros_like(arrays.values)),
      second_moment_(torch::zeros({std::ssize(arrays.layers)})) {
  TORCH_CHECK(!arrays.layers.empty(), "NovoGrad needs to know the layers");
}

std::vector<StateArray> NovoGrad::state() {
  return {{"first_moment", first_moment_}, {"second_moment", second_moment_, /*per_layer=*/true}};
}

void NovoGrad::step(const StepSize& size) {
  torch::NoGradGuard no_grad;
  RECORD_FUNCTION("lockstep::novograd", {});
  ++steps_done;
  const std::vector<double> norms = layer_norms(arrays_.layers, &LayerSlice::gradient);
  MomentumStep step;
  step.lr = size.lr;
  step.average_decay = size.average_decay;
  step.decay = size.momentum.value_or(config_.beta1);
  step.share = config_.gradient_averaging ? 1 - step.decay : 1;
  float* v = second_moment_.data_ptr<float>();
  for (std::size_t i = 0; i < norms.size(); ++i) {
    const LayerSlice& layer = arrays_.layers[i];
    const double scale =
        size.gradient_scale * (size.layer_scales.empty() ? 1 : size.layer_scales[i]);
    const double square = norms[i] * scale * (norms[i] * scale);
    const double mean = v[i] == 0 ? square : config_.beta2 * v[i] + (1 - config_.beta2) * square;
    v[i] = static_cast<float>(mean);
    if (layer.begin == layer.end) continue;
    step.gradient_scale = scale / std::sqrt(mean + config_.epsilon);
    step.weight_decay = layer.decays ? config_.weight_decay : 0;
    detail::momentum_update(arrays_, first_moment_, step, {layer.begin, layer.end});
  }
}

}  // namespace lockstep
