// Computes what nn/batch_norm_fused.h declares where x is on a GPU: by the GPU's own kernels
// (gpu/gpu_pixel_kernels.h), and without waiting for it. Only batch_norm_fused.cpp uses it.
#pragma once

#include "nn/batch_norm_fused.h"

namespace lockstep::detail {

BatchNormState gpu_batch_norm_state(const torch::Tensor& x, const BatchNorm& norm,
                                    const BatchNormMode& mode);

torch::Tensor gpu_batch_norm_rows(const torch::Tensor& x, const BatchNormState& state,
                                  const torch::Tensor& bias, const torch::Tensor& residual,
                                  bool relu);

BatchNormGradients gpu_batch_norm_backward(const BatchNormBackward& in, const BatchNormState& state,
                                           const BatchNorm& norm, const BatchNormMode& mode);

}  // namespace lockstep::detail
