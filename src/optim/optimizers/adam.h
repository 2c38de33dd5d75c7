// Implements Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019) as torch.optim
// computes them, and LazyAdam, which skips unused rows of lookup tables
// (tf.contrib.opt.LazyAdamOptimizer).
#pragma once

#include <memory>

#include "optim/optimizers/optimizer.h"

namespace lockstep {

enum class AdamKind { kAdam, kAdamW, kLazyAdam };

struct AdamConfig : OptimizerConfig {
  explicit AdamConfig(AdamKind which) : kind(which) {}
  double peak_lr = 2.0;
  double beta1 = 0.9;
  double beta2 = 0.98;  // Vaswani et al. 2017, section 5.3 (not the usual 0.999)
  double epsilon = 1e-9;
  bool corrected_epsilon = true;
  double weight_decay = 0;
  AdamKind kind;

  void describe(Fields& f) override;
  double lr() const override { return peak_lr; }
  bool has_momentum() const override { return true; }
  std::unique_ptr<Optimizer> make(const FlatArrays& arrays) const override;
};

std::unique_ptr<OptimizerConfig> make_adam_config();
std::unique_ptr<OptimizerConfig> make_adamw_config();
std::unique_ptr<OptimizerConfig> make_lazy_adam_config();

// The arrays are shared with the caller. On the CPU a step is one fused pass,
// elsewhere libtorch operations.
//
// LazyAdam: a row of a lookup table whose gradient is all zero was not used in the step. It keeps
// value and moments: no decay of the moments, no step from the remaining momentum, no weight decay;
// only its average is updated. All other weights move as with Adam. Where the table is also the
// output layer, the softmax gives every row a gradient, and LazyAdam is Adam.
class Adam : public Optimizer {
 public:
  Adam(const AdamConfig& config, const FlatArrays& arrays);
  void step(const StepSize& size) override;
  std::vector<StateArray> state() override;

 private:
  AdamStep parameters(const StepSize& size) const;
  void lazy_step(const AdamStep& step, const StepSize& size);
  void dense_step(const AdamStep& step, int64_t begin, int64_t end);
  void plain_step(const AdamStep& step, detail::PlainSlice slice) const;
  void table_step(const AdamStep& step, const LayerSlice& layer) const;
  void plain_table_step(const AdamStep& step, const LayerSlice& layer) const;

  AdamConfig config_;
  FlatArrays arrays_;
  torch::Tensor first_moment_, second_moment_;  // fp32 [total]
};

}  // namespace lockstep
