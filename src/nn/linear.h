// Computes linear layers: y = x W^T + b.
#pragma once

#include <torch/types.h>

#include "nn/numerics.h"
#include "nn/parameters.h"

namespace lockstep {

struct Linear {
  ParameterRef weight;  // [out, in]
  ParameterRef bias;    // [out], or null
};

// x [tokens, in] -> [tokens, out], both in the compute type. The fused path adds the gradients of
// weight and bias straight to value.grad() and hands autograd undefined ones (the hooks of their
// accumulators still run).
torch::Tensor linear(const torch::Tensor& x, const Linear& layer, const Numerics& numerics);

}  // namespace lockstep
