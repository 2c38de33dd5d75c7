// Computes convolutions of 3 x 3 by the kernels of kernels/winograd.h. Their products are those of
// kernels/packed_product.h in the type of x.
#pragma once

#include <torch/types.h>

#include "nn/convolution.h"

namespace lockstep::detail {

// Whether there are kernels for this convolution of x [n, in, height, width] (3 x 3, stride 1, one
// pixel of zero padding, channels in multiples of 64, fp32 or bf16), and they were measured to be
// faster here than libtorch's (benchmarks/notes/2026-11-image-steps.md): in fp32 on x86 from AVX2
// on, for 64 squares of 4 x 4 pixels or more; where own_gradients_pay(), in fp32 from 16 squares on
// and in bf16 from 32.
bool takes_winograd(const Convolution& convolution, const torch::Tensor& x);

// The same of the weight's gradient, for which no weight is transformed: in fp32 from 16 squares
// on, in bf16 from 32.
bool takes_winograd_gradient(const Convolution& convolution, const torch::Tensor& x);

// Convolves x [n, in, height, width], channels last, with weight [out, in, 3, 3], dense. `sums` is
// filled unless null.
torch::Tensor winograd_convolve(const torch::Tensor& x, const torch::Tensor& weight,
                                PixelSums* sums);

// Returns the gradient of x [n, in, height, width] for d_y [n, out, height, width]. If `into` is
// defined, adds the gradient to it and returns it.
torch::Tensor winograd_convolve_backward(const torch::Tensor& d_y, const torch::Tensor& weight,
                                         const torch::Tensor& into);

// Adds the weight's gradient to `gradient` [out, in, 3, 3], fp32 and dense; d_y
// and x have channels last.
void add_winograd_gradient(const torch::Tensor& gradient, const torch::Tensor& d_y,
                           const torch::Tensor& x);

}  // namespace lockstep::detail
