// Computes the matrix products of the fused paths, through whichever library is fastest here.
#pragma once

#include <torch/types.h>

namespace lockstep::detail {

// Whether products of x's type are slower than fp32's on this CPU, so that they are computed in
// fp32 and rounded, as a product with fp32 sums inside would be. libtorch has no fast ones of fp16,
// and of bf16 only with AMX or AMD's avx512_bf16 (benchmarks/notes/2026-11-number-formats.md).
bool widens(const torch::Tensor& x);
torch::Tensor wide(const torch::Tensor& x);

// Returns x W^T, dense: x [rows, in], weight [out, in], both fp32, bf16 or fp16 -> [rows, out].
torch::Tensor product_transposed(const torch::Tensor& x, const torch::Tensor& weight);

// Returns d_y W, dense: d_y [rows, out], weight [out, in] -> [rows, in]. If `into` is defined, adds
// the product to it and returns it.
torch::Tensor product(const torch::Tensor& d_y, const torch::Tensor& weight,
                      const torch::Tensor& into = {});

}  // namespace lockstep::detail
