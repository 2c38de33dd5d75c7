// Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019), as torch.optim computes them:
// both moments bias-corrected, epsilon added after the square root.
#pragma once

#include <memory>

#include "optim/optimizer.h"

namespace lockstep {

struct AdamConfig : OptimizerConfig {
  explicit AdamConfig(bool is_decoupled) : decoupled(is_decoupled) {}
  double peak_lr = 2.0;
  double beta1 = 0.9;
  double beta2 = 0.98;  // Vaswani et al. 2017, section 5.3 (not the usual 0.999)
  double epsilon = 1e-9;
  double weight_decay = 0;
  bool decoupled;

  void describe(Fields& f) override;
  double lr() const override { return peak_lr; }
  std::unique_ptr<Optimizer> make(const FlatArrays& arrays) const override;
};

std::unique_ptr<OptimizerConfig> make_adam_config();
std::unique_ptr<OptimizerConfig> make_adamw_config();

// arrays are shared with the caller. On the CPU one fused pass, elsewhere libtorch operations.
class Adam : public Optimizer {
 public:
  Adam(const AdamConfig& config, const FlatArrays& arrays);
  void step(const StepSize& size) override;
  std::vector<std::pair<std::string, torch::Tensor>> state() override;

 private:
  void plain_step(const StepSize& size);

  AdamConfig config_;
  FlatArrays arrays_;
  torch::Tensor first_moment_, second_moment_;  // fp32 [total]
};

}  // namespace lockstep
