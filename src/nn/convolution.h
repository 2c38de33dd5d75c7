// Convolution in two dimensions without a bias: what stands before a batch norm.
#pragma once

#include <torch/types.h>

#include "nn/numerics.h"
#include "nn/parameters.h"

namespace lockstep {

struct Convolution {
  ParameterRef weight;  // [out, in, kernel, kernel]
  int64_t stride = 1;
  int64_t padding = 0;  // zeros on each side

  int64_t outputs() const { return weight->shape[0]; }
  int64_t inputs() const { return weight->shape[1]; }
  int64_t kernel() const { return weight->shape[2]; }
  // Pixels of the result along a side of `pixels`.
  int64_t size_after(int64_t pixels) const {
    return (pixels + 2 * padding - kernel()) / stride + 1;
  }
};

// x [n, in, height, width] of the compute type -> [n, out, height', width'], libtorch's convolution
// with autograd: the reference of conv_norm (nn/conv_norm.h). TORCH_CHECK when the shapes do not
// fit.
torch::Tensor plain_convolution(const torch::Tensor& x, const Convolution& convolution,
                                at::ScalarType compute);

}  // namespace lockstep
