// Declares what the operations of nn/ share: the choice of implementation, and the plain (libtorch,
// autograd) parts that are the reference for the fused ones.
#pragma once

#include <torch/types.h>

#include "gpu/gpu_kernels.h"
#include "nn/dropout.h"
#include "nn/numerics.h"
#include "nn/parameters.h"

namespace lockstep::detail {

// The fused kernels are for the CPU and, most of them, for GPUs, where the program has those
// (gpu/gpu_kernels.h); everything else runs on operations of libtorch.
inline bool runs_fused(const Numerics& numerics, FusedOperation operation, const torch::Tensor& x) {
  if (!numerics.is_fused(operation)) return false;
  const bool has_gpu_kernel = operation != FusedOperation::kPooling;
  return x.is_cpu() || (has_gpu_kernel && gpu_kernels() != nullptr);
}

// The weight in the compute type, rounded through autograd: value.grad() receives its gradient.
inline torch::Tensor plain_weight(const Parameter& parameter, at::ScalarType compute) {
  return parameter.value.to(compute);
}

// The threshold on 16 random bits below which an element is dropped, and the
// scale of kept elements.
uint32_t dropout_threshold(double p);
float dropout_scale(double p);  // 1 / (1 - threshold / 65536)

// Returns x * mask * scale in the type of x, computed in fp32; x itself when dropout is off.
torch::Tensor plain_dropout(const torch::Tensor& x, const Dropout& dropout);

}  // namespace lockstep::detail
