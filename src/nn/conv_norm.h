// Computes convolution, batch norm, residual and ReLU in one operation:
// y = relu(norm(convolution(x)) + residual). The result of the convolution is rounded to the
// compute type; the rest is fp32 and rounded once.
#pragma once

#include <torch/types.h>

#include <memory>

#include "nn/batch_norm.h"
#include "nn/convolution.h"

namespace lockstep {

// The gradient of a tensor that several conv_norms read, such as the input of a residual block.
// Each adds its own gradient where it computes it, and the last one hands the sum to autograd,
// which would otherwise make a pass over the tensor for every sum. Use one object per tensor and
// forward pass; every reader must take part in the backward pass. The plain path does not use it.
class GradientSum {
 public:
  explicit GradientSum(int readers) : readers_(readers) {}

  // The sum to which the next reader adds; undefined for the first reader.
  const torch::Tensor& sum() const { return sum_; }
  // Takes the sum including this reader's gradient; returns what the reader gives autograd:
  // undefined except for the last reader.
  torch::Tensor give(torch::Tensor sum);

 private:
  int readers_, given_ = 0;
  torch::Tensor sum_;
};

struct ConvNormEnd {
  bool relu = true;
  torch::Tensor residual;  // [n, out, height', width'] of the compute type; may be undefined
  // Gradients of x and of the residual, if others read them too; may be the same object. A shared
  // residual needs a ReLU (TORCH_CHECK).
  std::shared_ptr<GradientSum> x_gradient = nullptr, residual_gradient = nullptr;
};

// x [n, in, height, width] -> [n, out, height', width'], both in the compute type with channels
// last in memory (TORCH_CHECK). In training the running statistics are updated (nn/batch_norm.h,
// also for errors). The fused path adds the gradients of the weights straight to value.grad().
torch::Tensor conv_norm(const torch::Tensor& x, const Convolution& convolution,
                        const BatchNorm& norm, const ConvNormEnd& end, const BatchNormMode& mode);

}  // namespace lockstep
