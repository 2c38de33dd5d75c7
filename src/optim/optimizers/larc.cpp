#include "optim/optimizers/larc.h"

#include <algorithm>

namespace lockstep {

void LarcConfig::describe(Fields& f) {
  f("mode", &mode, OneOf{{"off", "clip", "scale"}},
    "clip: the layer's step is limited; scale: it is set; in place of training.clip_norm");
  f("eta", &eta, Above{0}, "trust: step of a layer over its norm");
  f("min_update", &min_update, AtLeast{0}, "smallest factor of a gradient");
  f("epsilon", &epsilon, AtLeast{0}, "added to the norm of the gradient");
}

std::vector<double> larc_scales(const std::vector<LayerSlice>& layers, const LarcConfig& config,
                                double lr, double gradient_scale) {
  const std::vector<double> values = layer_norms(layers, &LayerSlice::value);
  const std::vector<double> gradients = layer_norms(layers, &LayerSlice::gradient);
  std::vector<double> scales;
  scales.reserve(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const double share = config.eta * values[i] / (gradients[i] * gradient_scale + config.epsilon);
    const double rate = config.mode == "clip" ? share / lr : share;
    const double scale = std::max(rate, config.min_update);
    scales.push_back(config.mode == "clip" ? std::min(scale, 1.0) : scale);
  }
  return scales;
}

}  // namespace lockstep
