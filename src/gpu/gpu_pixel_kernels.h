// Declares the arguments of the GPU's kernels for batch norm and for sums of columns
// (gpu/gpu_kernels.h): what those of kernels/pixel_kernels.h say, and how pixels are divided.
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"

namespace lockstep {

// Channels that a thread reads at once where `grouped` says that it may.
inline constexpr int64_t kGroupedChannels = 8;
// Groups of channels times parts of pixels that a block has at a time, at most.
inline constexpr int64_t kBlockSlots = 256;

// How rows of channels are divided among the threads of a GPU: block after block, each of `parts`
// parts of `part_pixels` rows. It depends on the sizes alone. A "row" of the kernels that take
// this is a block.
struct PixelBlocks {
  int64_t pixels, channels;
  int64_t part_pixels, parts, count;  // count: blocks
  // Channels are a multiple of kGroupedChannels, and memory begins at a multiple of so many
  // elements.
  bool grouped;
  float* sums;  // [count, 2, channels], of the kernels that sum
};

template <class T>
struct PixelSumsArgs {
  const T* x;
  const T* origin;     // [channels]; or null: only the sums of x are made, the others are 0
  PixelBlocks blocks;  // sums: of x - origin, and of its square
};
template <class T>
struct PixelNormArgs {
  BatchNormArgs<T> norm;
  PixelBlocks blocks;
};
template <class T>
struct PixelBackwardSumsArgs {
  BatchNormBackwardSumsArgs<T> norm;  // its sums are not used
  PixelBlocks blocks;                 // sums: of g, and of g * (x - mean)
};
template <class T>
struct PixelBackwardArgs {
  BatchNormBackwardArgs<T> norm;
  PixelBlocks blocks;
};

// The sums of all blocks, in fp64. Rows are channels. With an origin they become those of x and of
// its square, and the number of pixels follows them.
template <class T>
struct ChannelTotalsArgs {
  const T* origin;  // or null
  PixelBlocks blocks;
  double* totals;  // [2, channels]; with an origin one number more
};

// Adds the sums of all blocks to two gradients. Rows are channels.
struct AddTotalsArgs {
  const float* sums;  // [count, 2, channels]
  int64_t count, channels;
  float *first, *second;  // [channels]; null: not wanted
};

// What a batch norm multiplies by. Rows are channels. With totals it comes from these, and the
// running statistics move towards them; without, it comes from the running statistics.
struct BatchNormMomentsArgs {
  const double* totals;  // [2, channels], of x and of its square, and the number of pixels; or null
  int64_t channels;
  double momentum, epsilon;
  const float* weight;
  float *running_mean, *running_variance;
  float *mean, *scale, *rstd;
};

// What its backward pass makes of the sums of g and of g * (x - mean). Rows are channels.
struct BatchNormTermsArgs {
  const double* own;    // [2, channels]: of this rank, for the gradients of weight and bias
  const double* all;    // [2, channels]: of all ranks that were normalised together
  const double* count;  // their pixels; null: the running statistics were used
  int64_t channels;
  const float *scale, *rstd;
  float *d_weight, *d_bias;  // are added to; null: not wanted
  float *slope, *offset;     // of BatchNormBackwardArgs
};

}  // namespace lockstep
