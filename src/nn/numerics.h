// Selects the numerics of the operations in nn/: the number format, and which implementation runs.
#pragma once

#include <torch/types.h>

#include <array>
#include <cstdint>
#include <string_view>

namespace lockstep {

// The operations that have kernels of lockstep's own, with the names that
// run.plain_operations lists.
enum class FusedOperation {
  kLinear,
  kLinearRelu,
  kLinearResidualNorm,
  kLayerNorm,
  kEmbedding,
  kAttention,
  kCrossEntropy,
  kConvNorm,
  kPooling,
  kLinearGelu,
};
inline constexpr std::array<std::string_view, 10> kFusedOperationNames = {
    "linear",    "linear_relu", "linear_residual_norm", "layer_norm",
    "embedding", "attention",   "cross_entropy",        "conv_norm",
    "pooling",   "linear_gelu"};

struct Numerics {
  // Type of activations between layers and of matrix products: kFloat, kBFloat16 or kHalf. The
  // residual stream, normalisation statistics, softmax and losses are always fp32.
  at::ScalarType compute = at::kFloat;
  // True: uses lockstep's own kernels where there is one for the device. False: uses plain libtorch
  // operations and autograd, the reference that tests compare with.
  bool fused = true;
  // The factor of the gradients: backward() starts with it, and a loss that computes its gradient
  // in the forward pass applies it there. fp16 needs one (optim/optimizers/loss_scaler.h).
  float loss_scale = 1;
  uint32_t plain = 0;  // bits of the FusedOperations that run plain although `fused` is set

  bool is_fused(FusedOperation operation) const {
    return fused && (plain >> static_cast<int>(operation) & 1u) == 0;
  }
};

}  // namespace lockstep
