// Computes batch norm with residual and ReLU over rows of pixels, forward and backward: the
// kernels' passes and the computations between them. Only conv_norm uses it.
#pragma once

#include <torch/types.h>

#include "nn/batch_norm.h"
#include "nn/convolution.h"

namespace lockstep::detail {

// What a forward pass normalised with, fp32 [channels].
struct BatchNormState {
  torch::Tensor mean, scale;  // scale = weight * rstd
  torch::Tensor rstd;
  // On the CPU: values per channel, over all ranks that share statistics; 0: not training.
  double count = 0;
  // On a GPU: fp64 [2 * channels + 1], the sums over these values, over their squares, and their
  // number; undefined: not training.
  torch::Tensor totals;
};

// Computes the state for x [n, channels, height, width], channels last in memory. In training it
// comes from the batch, where `sums` may hold what x's convolution measured (on the CPU), and the
// running statistics are updated; otherwise from these.
BatchNormState batch_norm_state(const torch::Tensor& x, const PixelSums& sums,
                                const BatchNorm& norm, const BatchNormMode& mode);

// y = relu((x - mean) * scale + bias + residual), for rows of the compute type; residual may be
// undefined.
torch::Tensor batch_norm_rows(const torch::Tensor& x, const BatchNormState& state,
                              const torch::Tensor& bias, const torch::Tensor& residual, bool relu);

struct BatchNormBackward {
  torch::Tensor d_y, x;  // rows of the compute type
  torch::Tensor y;       // the forward pass's result; defined if there was a residual and a ReLU
  bool relu = true;
  bool wants_residual = false;
};

struct BatchNormGradients {
  torch::Tensor d_x, d_residual;
};

// Returns the gradients and adds those of weight and bias to theirs.
BatchNormGradients batch_norm_backward(const BatchNormBackward& in, const BatchNormState& state,
                                       const BatchNorm& norm, const BatchNormMode& mode);

}  // namespace lockstep::detail
