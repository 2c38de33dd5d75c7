// Optimizers work on flat arrays: one pass reads the gradient and writes the weight, its 16-bit
// copy and its moving average, and leaves the gradient zero for the next step.
#pragma once

#include <torch/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arrays/update.h"
#include "config/fields.h"

namespace lockstep {

// One parameter as this rank's arrays hold it: whole, in part (the ends of a shard cut through
// parameters) or not at all.
struct LayerSlice {
  int64_t begin = 0, end = 0;  // its elements in FlatArrays
  int64_t first = 0;           // number of its element that lies at `begin`
  int64_t row_width = 0;       // elements in a row of a lookup table; 0 for other parameters
  bool decays = true;          // false: exempt from the optimizer's weight decay
  // fp32 [elements of the parameter], the whole parameter on every rank: decisions per layer are
  // based on these, so that shards do not change a bit.
  torch::Tensor value, gradient;
};

// All arrays have the same shape [total] and device. `low` and `average` may be undefined.
struct FlatArrays {
  torch::Tensor values;                 // fp32 weights
  torch::Tensor gradients;              // fp32 sums; the step multiplies them by its gradient_scale
  torch::Tensor low;                    // bf16 or fp16 copy of the weights, written in every step
  torch::Tensor average;                // fp32 exponential moving average of the weights
  std::vector<LayerSlice> layers = {};  // every parameter of the network; gaps between them stay 0
};

struct StepSize {
  double lr = 0;
  double gradient_scale = 1;  // 1 / (tokens * loss scale), times the clipping factor
  double average_decay = 0;   // of the moving average in this step
  // Replaces the optimizer's own momentum or beta1 when the schedule changes it (one_cycle).
  std::optional<double> momentum = {};
  std::vector<double> layer_scales = {};  // by layer, multiply gradient_scale (LARC); empty: all 1
};

struct StateArray {
  std::string name;
  torch::Tensor data;      // fp32 [total], or one number per layer
  bool per_layer = false;  // [layers], the same on every rank
};

struct OptimizerState {
  std::vector<StateArray> arrays;  // in a fixed order
  int64_t steps_done = 0;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual void step(const StepSize& size) = 0;
  // Returns what a checkpoint must hold, in a fixed order. The tensors share
  // the optimizer's memory.
  virtual std::vector<StateArray> state() = 0;
  int64_t steps_done = 0;  // saved and restored with the state; Adam's bias correction uses it
};

// The configuration of one kind of optimizer, created by the catalogue and read from [optimizer].
class OptimizerConfig {
 public:
  virtual ~OptimizerConfig() = default;
  virtual void describe(Fields& f) = 0;
  virtual double lr() const = 0;          // multiplied by the schedule's value
  virtual bool has_momentum() const = 0;  // whether a schedule could change a momentum
  virtual std::unique_ptr<Optimizer> make(const FlatArrays& arrays) const = 0;
};

// Returns sqrt(sum of squares) of a flat fp32 array, summed in double in an order that does not
// depend on the number of threads. Not finite when an element is not finite.
double euclidean_norm(const torch::Tensor& flat);
// Returns the same norm of each layer's value or gradient.
std::vector<double> layer_norms(const std::vector<LayerSlice>& layers,
                                torch::Tensor LayerSlice::*tensor);

// Only the optimizers use what follows.
namespace detail {

// Returns the arrays in the form that the kernels take; m and v may be undefined. CPU only.
UpdateArrays update_arrays(const FlatArrays& arrays, const torch::Tensor& m,
                           const torch::Tensor& v);

// The data of a plain step, on a device without kernels: [begin, end) of each array.
struct PlainSlice {
  torch::Tensor value, gradient, low, average, m, v;
  PlainSlice(const FlatArrays& arrays, const torch::Tensor& m, const torch::Tensor& v,
             std::pair<int64_t, int64_t> range);
  // Multiplies the gradient by its scale, then applies weight decay to the
  // gradient or to the value.
  void begin(const UpdateStep& step);
  // Sets the gradient to 0 and low to value, and updates the average.
  void end(const UpdateStep& step);
};

// A range of elements that a step treats alike.
struct UpdateRun {
  int64_t begin = 0, end = 0;
  double gradient_scale = 1;
  bool decays = true;
};
// Divides all elements into runs: one run or, where scales or decay differ, single layers or groups
// of them.
std::vector<UpdateRun> update_runs(const FlatArrays& arrays, const StepSize& size);

}  // namespace detail
}  // namespace lockstep
