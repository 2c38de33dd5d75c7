// Convolution in two dimensions without a bias: what stands before a batch norm.
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
  // Pixels of the result along a side of `pixels`.
  int64_t size_after(int64_t pixels) const {
    return (pixels + 2 * padding - kernel()) / stride + 1;
  }
};

// x [n, in, height, width] of the compute type -> [n, out, height', width'], libtorch's convolution
// with autograd: the reference of conv_norm (nn/conv_norm.h). TORCH_CHECK when the shapes do not
// fit.
torch::Tensor plain_convolution(const torch::Tensor& x, const Convolution& convolution,
                                at::ScalarType compute);

namespace detail {

inline torch::Tensor channels_last(const torch::Tensor& x) {
  return x.contiguous(at::MemoryFormat::ChannelsLast);
}

// The weight in the type of x [n, in, height, width] as the pieces below read it for x, [out, in,
// kernel, kernel]: a copy with the inputs last in memory where libtorch convolves.
torch::Tensor weight_for_use(const Convolution& convolution, const torch::Tensor& x);

// Of blocks of pixels the values of the first one, and the sums over all of them of (value - first)
// and of its square.
struct PixelSums {
  torch::Tensor values;        // fp32 [3, blocks, channels]; undefined: not measured
  std::vector<int64_t> count;  // [blocks], of pixels; 0 possible
};

// The pieces of the fused path: no autograd, x and d_y with channels last in memory, `used` what
// weight_for_use gave.
// `sums`, unless null: filled where the kernel that convolves also measures its result.
torch::Tensor convolve(const torch::Tensor& x, const torch::Tensor& used,
                       const Convolution& convolution, PixelSums* sums);
// -> the gradient of x, of the shape `sizes` [n, in, height, width]; `into`, where defined and of
// that shape with channels last, += that, and is returned.
torch::Tensor convolve_backward(const torch::Tensor& d_y, const torch::Tensor& used,
                                at::IntArrayRef sizes, const Convolution& convolution,
                                torch::Tensor into = {});
// gradient [out, in, kernel, kernel], fp32 and dense, += that of the weight.
void add_convolution_gradient(torch::Tensor gradient, const torch::Tensor& d_y,
                              const torch::Tensor& x, const Convolution& convolution);

// The rows of pixels of x, channels last in memory: [n * height * width, channels], a view.
torch::Tensor pixel_rows(const torch::Tensor& x);
// The opposite: rows [n * height * width, channels] as [n, channels, height, width], a view.
torch::Tensor image_of_rows(const torch::Tensor& rows, int64_t n, int64_t height, int64_t width);

}  // namespace detail
}  // namespace lockstep
