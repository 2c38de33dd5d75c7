// Implements NovoGrad (Ginsburg et al. 2019, "Stochastic Gradient Methods with Layer-wise Adaptive
// Moments"), in OpenSeq2Seq's form: one second moment per layer, of its gradient's norm.
#pragma once

#include <memory>

#include "optim/optimizers/optimizer.h"

namespace lockstep {

struct NovoGradConfig : OptimizerConfig {
  double peak_lr = 0.04;
  double beta1 = 0.95;
  double beta2 = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool gradient_averaging = false;

  void describe(Fields& f) override;
  double lr() const override { return peak_lr; }
  bool has_momentum() const override { return true; }
  std::unique_ptr<Optimizer> make(const FlatArrays& arrays) const override;
};

std::unique_ptr<OptimizerConfig> make_novograd_config();

// For each layer: v = |g|^2 in the first step, then beta2 * v + (1 - beta2) * |g|^2;
// m = beta1 * m + (g / sqrt(v + epsilon) + weight_decay * w), where gradient averaging multiplies
// the bracket by 1 - beta1; w -= lr * m. A "layer" is a parameter, as in the sources.
// The arrays are shared with the caller; arrays.layers must be set.
class NovoGrad : public Optimizer {
 public:
  NovoGrad(const NovoGradConfig& config, const FlatArrays& arrays);
  void step(const StepSize& size) override;
  std::vector<StateArray> state() override;

 private:
  NovoGradConfig config_;
  FlatArrays arrays_;
  torch::Tensor first_moment_;   // fp32 [total]
  torch::Tensor second_moment_;  // fp32 [layers], on the CPU
};

}  // namespace lockstep
