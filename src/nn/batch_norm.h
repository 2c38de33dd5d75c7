// Computes batch normalisation (Ioffe and Szegedy 2015) over [n, channels, height, width], with
// weights and statistics in fp32 whatever the compute type.
//
// In training a channel is normalised by the mean and the biased variance of the batch, and the
// running statistics move by `momentum` towards the mean and the unbiased variance, as in PyTorch.
#pragma once

#include <torch/types.h>

#include <functional>

#include "nn/numerics.h"
#include "nn/parameters.h"

namespace lockstep {

struct BatchNorm {
  ParameterRef weight, bias;                 // [channels]
  BufferRef running_mean, running_variance;  // [channels]
  double epsilon = 1e-5;
  double momentum = 0.1;  // weight of the new batch in the running statistics
};

// Adds name.weight (ones, or zeros if zero_weight), name.bias, name.running_mean and
// name.running_var.
BatchNorm add_batch_norm(const std::string& name, int64_t channels, bool zero_weight,
                         Parameters& parameters);

struct BatchNormMode {
  Numerics numerics;
  bool training = false;  // false: uses the running statistics and leaves them unchanged
  // Replaces a fp64 tensor on the device of x by its sum over all ranks: the statistics are then
  // those of all ranks' images together. Called once forward and once backward for every batch
  // norm, in the same order on every rank. Unset: each rank uses its own images.
  std::function<void(torch::Tensor&)> sum_over_ranks;
};

// x [n, channels, height, width] in the compute type -> fp32, by libtorch with autograd: the
// reference for conv_norm (nn/conv_norm.h). Throws ConfigError in training when a channel has only
// one value.
torch::Tensor plain_batch_norm(const torch::Tensor& x, const BatchNorm& norm,
                               const BatchNormMode& mode);

namespace detail {
// Throws that ConfigError. `values`: values per channel over all ranks that share statistics.
void check_values_a_channel(int64_t values, const BatchNorm& norm, const torch::Tensor& x);
}  // namespace detail

}  // namespace lockstep
