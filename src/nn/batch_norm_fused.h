// Batch norm with residual and ReLU on rows of pixels, forward and backward: the kernels' passes
// and what lies between them. For conv_norm only.
#pragma once

#include <torch/types.h>

#include "nn/batch_norm.h"
#include "nn/convolution.h"

namespace lockstep::detail {

// What a forward pass normalised with, fp32 [channels].
struct BatchNormState {
  torch::Tensor mean, scale;  // scale = weight * rstd
  torch::Tensor rstd;
  double count = 0;  // values a channel, over all ranks that share statistics; 0: not training
};

// Of x [n, channels, height, width], channels last in memory, in training, where `sums` may be what
// its convolution measured; else the running statistics. In training these move, too.
BatchNormState batch_norm_state(const torch::Tensor& x, const PixelSums& sums,
                                const BatchNorm& norm, const BatchNormMode& mode);

// y = relu((x - mean) * scale + bias + residual): rows of the compute type; residual may be
// undefined.
torch::Tensor batch_norm_rows(const torch::Tensor& x, const BatchNormState& state,
                              const torch::Tensor& bias, const torch::Tensor& residual, bool relu);

struct BatchNormBackward {
  torch::Tensor d_y, x;  // rows of the compute type
  torch::Tensor y;       // the forward pass's result; defined where there was a residual and a ReLU
  bool relu = true;
  bool wants_residual = false;
};

struct BatchNormGradients {
  torch::Tensor d_x, d_residual;
};

// Adds the gradients of weight and bias.
BatchNormGradients batch_norm_backward(const BatchNormBackward& in, const BatchNormState& state,
                                       const BatchNorm& norm, const BatchNormMode& mode);

}  // namespace lockstep::detail
