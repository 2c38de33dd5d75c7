// Convolutions of 3 x 3 by the kernels of kernels/winograd.h. Their products are those of
// kernels/packed_product.h in the type of x.
#pragma once

#include <torch/types.h>

#include "nn/convolution.h"

namespace lockstep::detail {

// Whether there are kernels for this convolution of x [n, in, height, width]: 3 x 3, stride 1, one
// pixel of zeros around, channels in multiples of 64, fp32 or bf16; and whether they were measured
// to be faster here than libtorch's (benchmarks/notes/2026-11-image-steps.md).
bool takes_winograd(const Convolution& convolution, const torch::Tensor& x);

// The convolution of x [n, in, height, width], channels last, with weight [out, in, 3, 3], dense.
// `sums`, unless null, is filled.
torch::Tensor winograd_convolve(const torch::Tensor& x, const torch::Tensor& weight,
                                PixelSums* sums);

// From d_y [n, out, height, width] to the gradient of x [n, in, height, width]; `into`, where
// defined, += that, and is returned.
torch::Tensor winograd_convolve_backward(const torch::Tensor& d_y, const torch::Tensor& weight,
                                         const torch::Tensor& into);

// gradient [out, in, 3, 3], fp32 and dense, += that of the weight; d_y and x with channels last.
void add_winograd_gradient(const torch::Tensor& gradient, const torch::Tensor& d_y,
                           const torch::Tensor& x);

}  // namespace lockstep::detail
