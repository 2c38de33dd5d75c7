// Convolution, batch norm, residual and ReLU in one operation: y = relu(norm(convolution(x)) +
// residual). The result of the convolution is rounded to the compute type, the rest is fp32 and
// rounded once.
#pragma once

#include <torch/types.h>

#include <memory>

#include "nn/batch_norm.h"
#include "nn/convolution.h"

namespace lockstep {

// The gradient of a tensor that several conv_norms read, as the input of a residual block: each
// adds its own where it computes it, and the last one hands the sum to autograd, which would make a
// pass over the tensor for every sum. One object a tensor and forward pass; none of its readers may
// be left out of the backward pass. The plain path does not use it.
class GradientSum {
 public:
  explicit GradientSum(int readers) : readers_(readers) {}

  // What the next reader adds to; undefined: it is the first.
  const torch::Tensor& sum() const { return sum_; }
  // The sum with this reader's gradient -> what the reader gives autograd: undefined but for the
  // last one.
  torch::Tensor give(torch::Tensor sum);

 private:
  int readers_, given_ = 0;
  torch::Tensor sum_;
};

struct ConvNormEnd {
  bool relu = true;
  torch::Tensor residual;  // [n, out, height', width'] of the compute type; may be undefined
  // Of x and of the residual, where others read them as well; may be the same. A shared residual
  // needs a ReLU (TORCH_CHECK).
  std::shared_ptr<GradientSum> x_gradient = nullptr, residual_gradient = nullptr;
};

// x [n, in, height, width] -> [n, out, height', width'], both in the compute type with channels
// last in memory (TORCH_CHECK). In training the running statistics move (nn/batch_norm.h, errors
// there). The fused path adds the gradients of the weights straight into value.grad().
torch::Tensor conv_norm(const torch::Tensor& x, const Convolution& convolution,
                        const BatchNorm& norm, const ConvNormEnd& end, const BatchNormMode& mode);

}  // namespace lockstep
