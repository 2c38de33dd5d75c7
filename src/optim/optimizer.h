// Optimizers over flat arrays: one pass reads the gradient and writes the weight, its 16-bit copy
// and its moving average, and leaves the gradient zero for the next step.
#pragma once

#include <torch/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/fields.h"
#include "kernels/update.h"

namespace lockstep {

// One parameter as the arrays of this rank hold it: whole, in part (the ends of a shard cut through
// parameters) or not at all.
struct LayerSlice {
  int64_t begin = 0, end = 0;  // its elements in FlatArrays
  int64_t first = 0;           // which of its own elements lies at `begin`
  int64_t row_width = 0;       // of a lookup table: elements of a row; 0 for other parameters
  bool decays = true;          // false: the optimizer's weight decay leaves it alone
  // fp32 [elements of the parameter], whole whoever updates it: what is decided layer by layer is
  // decided from these, so that shards make no difference to a bit.
  torch::Tensor value, gradient;
};

// All of one shape [total] and device. `low` and `average` may be undefined.
struct FlatArrays {
  torch::Tensor values;     // fp32 weights
  torch::Tensor gradients;  // fp32, sums; the step multiplies them by its gradient_scale
  torch::Tensor low;        // bf16 or fp16 copy of the weights, written with every step
  torch::Tensor average;    // fp32 exponential moving average of the weights
  std::vector<LayerSlice> layers = {};  // every parameter of the network; what lies between stays 0
};

struct StepSize {
  double lr = 0;
  double gradient_scale = 1;  // 1 / (tokens * loss scale), times the clipping factor
  double average_decay = 0;   // of the moving average in this step
  // In place of the optimizer's own momentum or beta1, when the schedule moves it (one_cycle).
  std::optional<double> momentum = {};
  std::vector<double> layer_scales = {};  // by layer, times gradient_scale (LARC); empty: all 1
};

struct StateArray {
  std::string name;
  torch::Tensor data;      // fp32 [total], or one number a layer
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
  // What a checkpoint must hold, in a fixed order. Shared, not copied.
  virtual std::vector<StateArray> state() = 0;
  int64_t steps_done = 0;  // saved and restored with the state; Adam's bias correction needs it
};

// The settings of one kind of optimizer, made by the catalogue, read from [optimizer].
class OptimizerConfig {
 public:
  virtual ~OptimizerConfig() = default;
  virtual void describe(Fields& f) = 0;
  virtual double lr() const = 0;          // times the schedule's value
  virtual bool has_momentum() const = 0;  // that a schedule could move
  virtual std::unique_ptr<Optimizer> make(const FlatArrays& arrays) const = 0;
};

// sqrt(sum of squares) of a flat fp32 array, summed in double in an order that does not depend on
// the number of threads. Not finite when an element is not.
double euclidean_norm(const torch::Tensor& flat);
// The same of each layer's value or gradient.
std::vector<double> layer_norms(const std::vector<LayerSlice>& layers,
                                torch::Tensor LayerSlice::*tensor);

// For the optimizers' own use.
namespace detail {

// The arrays as the kernels see them; m and v may be undefined. On the CPU only.
UpdateArrays update_arrays(const FlatArrays& arrays, const torch::Tensor& m,
                           const torch::Tensor& v);

// What the plain step of a device without kernels works on: [begin, end) of each array.
struct PlainSlice {
  torch::Tensor value, gradient, low, average, m, v;
  PlainSlice(const FlatArrays& arrays, const torch::Tensor& m, const torch::Tensor& v,
             std::pair<int64_t, int64_t> range);
  // gradient *= scale, then weight decay, on the gradient or on the value.
  void begin(const UpdateStep& step);
  // gradient = 0, low = value, and the average moves.
  void end(const UpdateStep& step);
};

// Neighbouring elements that a step treats alike.
struct UpdateRun {
  int64_t begin = 0, end = 0;
  double gradient_scale = 1;
  bool decays = true;
};
// All elements as one run or, where scales or decay differ, layers by themselves or in groups.
std::vector<UpdateRun> update_runs(const FlatArrays& arrays, const StepSize& size);

}  // namespace detail
}  // namespace lockstep
