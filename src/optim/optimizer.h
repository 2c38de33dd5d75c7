// Optimizers over flat arrays: one pass reads the gradient and writes the weight, its bfloat16 copy
// and its moving average, and leaves the gradient zero for the next step.
#pragma once

#include <torch/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/fields.h"

namespace lockstep {

// All of one shape [total] and device. `low` and `average` may be undefined.
struct FlatArrays {
  torch::Tensor values;     // fp32 weights
  torch::Tensor gradients;  // fp32, sums; the step multiplies them by its gradient_scale
  torch::Tensor low;        // bf16 copy of the weights, written with every step
  torch::Tensor average;    // fp32 exponential moving average of the weights
};

struct StepSize {
  double lr = 0;
  double gradient_scale = 1;  // 1 / (tokens * loss scale), times the clipping factor
  double average_decay = 0;   // of the moving average in this step
};

struct OptimizerState {
  std::vector<std::pair<std::string, torch::Tensor>> arrays;  // flat, in a fixed order
  int64_t steps_done = 0;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual void step(const StepSize& size) = 0;
  // Names and flat arrays that a checkpoint must hold, in a fixed order. Shared, not copied.
  virtual std::vector<std::pair<std::string, torch::Tensor>> state() = 0;
  int64_t steps_done = 0;  // saved and restored with the state; Adam's bias correction needs it
};

// The settings of one kind of optimizer, made by the catalogue, read from [optimizer].
class OptimizerConfig {
 public:
  virtual ~OptimizerConfig() = default;
  virtual void describe(Fields& f) = 0;
  virtual double lr() const = 0;  // times the schedule's value
  virtual std::unique_ptr<Optimizer> make(const FlatArrays& arrays) const = 0;
};

// sqrt(sum of squares) of a flat fp32 array, summed in double in an order that does not depend on
// the number of threads. Not finite when an element is not.
double euclidean_norm(const torch::Tensor& flat);

}  // namespace lockstep
