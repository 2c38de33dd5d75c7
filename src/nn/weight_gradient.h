// Computes the gradient of a weight by a kernel that adds it straight to fp32
// (kernels/weight_gradient.h), if there is one for this CPU.
#pragma once

#include <torch/types.h>

namespace lockstep::detail {

struct WeightGradientShape {
  int64_t images, height, width;  // of x
  int64_t kernel = 1;             // or 3 with one pixel of zero padding
  int64_t stride = 1;             // or 2 with kernel 3
};

// Adds the gradient for d_y [pixels, out] and x [images * height * width, in], rows of pixels, to
// `gradient` [out, in, kernel, kernel] or [out, in], dense fp32. Returns false, having done
// nothing, when no kernel here can do it.
bool add_weight_gradient_packed(const torch::Tensor& gradient, const torch::Tensor& d_y,
                                const torch::Tensor& x, const WeightGradientShape& shape);

}  // namespace lockstep::detail
