// Matrix products of the fused paths: libtorch's, through the library that is fastest here.
#pragma once

#include <torch/types.h>

namespace lockstep::detail {

// x W^T: x [rows, in], weight [out, in], alike fp32, bf16 or fp16 -> [rows, out], dense.
torch::Tensor product_transposed(const torch::Tensor& x, const torch::Tensor& weight);

// d_y W: d_y [rows, out], weight [out, in] -> [rows, in], dense; `into`, where defined, += that,
// and is returned.
torch::Tensor product(const torch::Tensor& d_y, const torch::Tensor& weight,
                      torch::Tensor into = {});

}  // namespace lockstep::detail
