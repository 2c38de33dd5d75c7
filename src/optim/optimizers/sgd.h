// Implements stochastic gradient descent with momentum as torch.optim.SGD computes it.
#pragma once

#include <memory>

#include "optim/optimizers/optimizer.h"

namespace lockstep {

struct SgdConfig : OptimizerConfig {
  double peak_lr = 0.1;
  double momentum = 0.9;
  double dampening = 0;
  bool nesterov = false;
  double weight_decay = 0;

  void describe(Fields& f) override;
  double lr() const override { return peak_lr; }
  bool has_momentum() const override { return momentum > 0; }
  std::unique_ptr<Optimizer> make(const FlatArrays& arrays) const override;
};

std::unique_ptr<OptimizerConfig> make_sgd_config();

// g = gradient + weight_decay * value; m = momentum * m + (1 - dampening) * g, but m = g in the
// first step; value -= lr * (nesterov ? g + momentum * m : m). Without momentum, value -= lr * g,
// and there is no state. The arrays are shared with the caller.
class Sgd : public Optimizer {
 public:
  Sgd(const SgdConfig& config, const FlatArrays& arrays);
  void step(const StepSize& size) override;
  std::vector<StateArray> state() override;

 private:
  SgdConfig config_;
  FlatArrays arrays_;
  torch::Tensor momentum_;  // fp32 [total], undefined without momentum
};

namespace detail {
// Does momentum_step() on any device; the momentum may be undefined.
void momentum_update(const FlatArrays& arrays, const torch::Tensor& momentum,
                     const MomentumStep& step, std::pair<int64_t, int64_t> range);
}  // namespace detail

}  // namespace lockstep
