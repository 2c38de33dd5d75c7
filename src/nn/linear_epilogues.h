// Computes matrix products fused with what follows them in a residual block: the fused path writes
// the product once and finishes its rows while they are in the cache.
#pragma once

#include <torch/types.h>

#include "nn/dropout.h"
#include "nn/layer_norm.h"
#include "nn/linear.h"
#include "nn/numerics.h"

namespace lockstep {

// dropout(relu(x W^T + b)): x [tokens, in] -> [tokens, out], both in the compute type. Only the
// result is kept for the backward pass: the gradient passes where it is positive.
torch::Tensor linear_relu(const torch::Tensor& x, const Linear& layer, const Dropout& dropout,
                          const Numerics& numerics);

// dropout(gelu(x W^T + b)), gelu(x) = x * Phi(x) (Hendrycks and Gimpel 2016); shapes as for
// linear_relu. The slope is kept for the backward pass, in the compute type.
torch::Tensor linear_gelu(const torch::Tensor& x, const Linear& layer, const Dropout& dropout,
                          const Numerics& numerics);

// dropout(silu(x W^T + b)), silu(x) = x / (1 + e^-x), which others call swish; all else as for
// linear_gelu, run.plain_operations included.
torch::Tensor linear_silu(const torch::Tensor& x, const Linear& layer, const Dropout& dropout,
                          const Numerics& numerics);

// The residual stream after a block, and its norm, which the next block reads.
struct ResidualNorm {
  torch::Tensor stream;  // fp32 [tokens, width]
  torch::Tensor normed;  // [tokens, width] in the compute type
};

// stream = residual + dropout(x W^T + b), normed = norm(stream): residual fp32 [tokens, width],
// x [tokens, in] in the compute type; the layer's bias may be null. The row scale of `dropout` has
// no gradient.
ResidualNorm linear_residual_norm(const torch::Tensor& residual, const torch::Tensor& x,
                                  const Linear& layer, const BranchDropout& dropout,
                                  const LayerNorm& norm, const Numerics& numerics);

// Post-norm (Vaswani et al. 2017, section 5.4): stream = norm(residual + dropout(x W^T + b)),
// normed = the stream in the compute type.
ResidualNorm linear_residual_post_norm(const torch::Tensor& residual, const torch::Tensor& x,
                                       const Linear& layer, const BranchDropout& dropout,
                                       const LayerNorm& norm, const Numerics& numerics);

}  // namespace lockstep
