// Convolution, batch norm, residual and ReLU in one operation: y = relu(norm(convolution(x)) +
// residual). The result of the convolution is rounded to the compute type, the rest is fp32 and
// rounded once.
#pragma once

#include <torch/types.h>

#include "nn/batch_norm.h"
#include "nn/convolution.h"

namespace lockstep {

struct ConvNormEnd {
  bool relu = true;
  torch::Tensor residual;  // [n, out, height', width'] of the compute type; may be undefined
};

// x [n, in, height, width] -> [n, out, height', width'], both in the compute type with channels
// last in memory (TORCH_CHECK). In training the running statistics move (nn/batch_norm.h, errors
// there). The fused path adds the gradients of the weights straight into value.grad().
torch::Tensor conv_norm(const torch::Tensor& x, const Convolution& convolution,
                        const BatchNorm& norm, const ConvNormEnd& end, const BatchNormMode& mode);

}  // namespace lockstep
