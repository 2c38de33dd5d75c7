// Computes two-dimensional convolution without a bias, as it is used before a batch norm.
#pragma once

#include <torch/types.h>

#include <vector>

#include "nn/numerics.h"
#include "nn/parameters.h"

namespace lockstep {

struct Convolution {
  ParameterRef weight;  // [out, in, kernel, kernel]
  int64_t stride = 1;
  int64_t padding = 0;  // zeros on each side

  int64_t outputs() const { return weight->shape[0]; }
  int64_t inputs() const { return weight->shape[1]; }
  int64_t kernel() const { return weight->shape[2]; }
  // Returns the result's pixels along a side of `pixels` pixels.
  int64_t size_after(int64_t pixels) const {
    return (pixels + 2 * padding - kernel()) / stride + 1;
  }
};

// x [n, in, height, width] in the compute type -> [n, out, height', width'], by libtorch's
// convolution with autograd: the reference for conv_norm (nn/conv_norm.h). TORCH_CHECK fails when
// the shapes do not match.
torch::Tensor plain_convolution(const torch::Tensor& x, const Convolution& convolution,
                                at::ScalarType compute);

namespace detail {

inline torch::Tensor channels_last(const torch::Tensor& x) {
  return x.contiguous(at::MemoryFormat::ChannelsLast);
}

// Returns the weight [out, in, kernel, kernel] in the type of x [n, in, height, width], as the
// functions below read it for x: where libtorch convolves, a copy with the inputs last in memory.
torch::Tensor weight_for_use(const Convolution& convolution, const torch::Tensor& x);

// For blocks of pixels: the values of the first pixel, and the sums over all pixels of (value -
// first) and of its square.
struct PixelSums {
  torch::Tensor values;        // fp32 [3, blocks, channels]; undefined: not measured
  std::vector<int64_t> count;  // [blocks]: pixels of the block, possibly 0
};

// The parts of the fused path. They have no autograd; x and d_y have channels last in memory, and
// `used` is what weight_for_use returned.
//
// Convolves. `sums`, unless null, is filled if the kernel that convolves also measures its result.
torch::Tensor convolve(const torch::Tensor& x, const torch::Tensor& used,
                       const Convolution& convolution, PixelSums* sums);
// Returns the gradient of x, of shape `sizes` [n, in, height, width]. If `into` is defined (of that
// shape with channels last), adds the gradient to it and returns it.
torch::Tensor convolve_backward(const torch::Tensor& d_y, const torch::Tensor& used,
                                at::IntArrayRef sizes, const Convolution& convolution,
                                torch::Tensor into = {});
// Adds the weight's gradient to `gradient` [out, in, kernel, kernel], fp32 and dense.
void add_convolution_gradient(const torch::Tensor& gradient, const torch::Tensor& d_y,
                              const torch::Tensor& x, const Convolution& convolution);

// Returns a view of x, channels last in memory, as rows of pixels [n * height * width, channels].
torch::Tensor pixel_rows(const torch::Tensor& x);
// The inverse: a view of rows [n * height * width, channels] as [n, channels, height, width].
torch::Tensor image_of_rows(const torch::Tensor& rows, int64_t n, int64_t height, int64_t width);

}  // namespace detail
}  // namespace lockstep
