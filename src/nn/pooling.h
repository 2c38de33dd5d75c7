// Computes pooling over pixels of x [n, channels, height, width] in the compute type,
// channels last in memory.
#pragma once

#include <torch/types.h>

#include "nn/numerics.h"

namespace lockstep {

// Max pooling over 3 x 3 pixels with stride 2 and one pixel of padding that never wins (He et al.
// 2016, after the first convolution) -> [n, channels, (height + 1) / 2, (width + 1) / 2]. By
// libtorch: a kernel of our own took 1.8 times as long in fp32 and 0.9 times in bf16
// (benchmarks/notes/2026-11-kernels.md).
torch::Tensor max_pool(const torch::Tensor& x, const Numerics& numerics);

// The mean over all pixels, summed in fp32 -> [n, channels] in the compute type.
torch::Tensor average_pool(const torch::Tensor& x, const Numerics& numerics);

}  // namespace lockstep
