// Computes layer normalisation (Ba, Kiros, Hinton 2016), with statistics and weights in fp32.
#pragma once

#include <torch/types.h>

#include "nn/numerics.h"
#include "nn/parameters.h"

namespace lockstep {

struct LayerNorm {
  ParameterRef weight, bias;  // [width]
  double epsilon = 1e-5;
};

// x fp32 [tokens, width] -> [tokens, width] in the compute type.
torch::Tensor layer_norm(const torch::Tensor& x, const LayerNorm& layer, const Numerics& numerics);

}  // namespace lockstep
