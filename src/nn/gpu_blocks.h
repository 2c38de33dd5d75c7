// Divides rows of channels among the threads of a GPU (gpu/gpu_pixel_kernels.h).
#pragma once

#include <torch/types.h>

#include <initializer_list>

#include "gpu/gpu_pixel_kernels.h"

namespace lockstep::detail {

// The blocks of rows [pixels, channels], all of `memory` (undefined: not used) being read or
// written by groups of channels where they can be. `sums` is fp32 [blocks, 2, channels] for a
// kernel that sums, else undefined.
struct GpuBlocks {
  PixelBlocks blocks;
  torch::Tensor sums;
};
GpuBlocks gpu_blocks(const torch::Tensor& rows, std::initializer_list<torch::Tensor> memory,
                     bool sums);

// gradient [width] += sum over the rows of x [rows, width], dense and on the GPU.
void add_column_sums_on_gpu(const torch::Tensor& gradient, const torch::Tensor& x);

}  // namespace lockstep::detail
