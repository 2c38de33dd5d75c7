// Matrix products with what follows them in a residual block, as one operation each: the fused path
// writes the product once and finishes its rows while they are in the cache.
#pragma once

#include <torch/types.h>

#include "nn/dropout.h"
#include "nn/layer_norm.h"
#include "nn/linear.h"
#include "nn/numerics.h"

namespace lockstep {

// dropout(relu(x W^T + b)): x [tokens, in] -> [tokens, out], both in the compute type. Only the
// result is kept for the backward pass: where it is positive the gradient passes.
torch::Tensor linear_relu(const torch::Tensor& x, const Linear& layer, const Dropout& dropout,
                          const Numerics& numerics);

// The residual stream after a block, and its norm, the input of the next block.
struct ResidualNorm {
  torch::Tensor stream;  // fp32 [tokens, width]
  torch::Tensor normed;  // [tokens, width] in the compute type
};

// stream = residual + dropout(x W^T + b), normed = norm(stream): residual fp32 [tokens, width],
// x [tokens, in] in the compute type.
ResidualNorm linear_residual_norm(const torch::Tensor& residual, const torch::Tensor& x,
                                  const Linear& layer, const Dropout& dropout,
                                  const LayerNorm& norm, const Numerics& numerics);

}  // namespace lockstep
