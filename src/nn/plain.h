// What the operations of nn/ share: which implementation runs, and the plain (libtorch, autograd)
// pieces that are the reference of the fused ones.
#pragma once

#include <torch/types.h>

#include "nn/dropout.h"
#include "nn/numerics.h"
#include "nn/parameters.h"

namespace lockstep::detail {

// The fused kernels are for the CPU and the three compute types; all else is plain.
inline bool runs_fused(const Numerics& numerics, FusedOperation operation, const torch::Tensor& x) {
  return numerics.is_fused(operation) && x.device().is_cpu();
}

// The weight in the compute type, rounded through autograd: value.grad() receives its gradient.
inline torch::Tensor plain_weight(const Parameter& parameter, at::ScalarType compute) {
  return parameter.value.to(compute);
}

// The probability that dropout really uses, and the threshold on 16 random bits that makes it.
uint32_t dropout_threshold(double p);
float dropout_scale(double p);  // 1 / (1 - threshold / 65536)

// x * mask * scale, computed in fp32 -> type of x; x itself when dropout is off.
torch::Tensor plain_dropout(const torch::Tensor& x, const Dropout& dropout);

}  // namespace lockstep::detail
