// Computes the matrix products of the fused paths, through whichever library is fastest here.
#pragma once

#include <torch/types.h>

namespace lockstep::detail {

// Returns x W^T, dense: x [rows, in], weight [out, in], both fp32, bf16 or fp16 -> [rows, out].
torch::Tensor product_transposed(const torch::Tensor& x, const torch::Tensor& weight);

// Returns d_y W, dense: d_y [rows, out], weight [out, in] -> [rows, in]. If `into` is defined, adds
// the product to it and returns it.
torch::Tensor product(const torch::Tensor& d_y, const torch::Tensor& weight,
                      torch::Tensor into = {});

}  // namespace lockstep::detail
