// Computes matrix products by the kernels of kernels/packed_product.h: each product
// packs its weight, or for a weight's gradient both factors. A row's bits do not depend
// on the number of threads.
#pragma once

#include <torch/types.h>

namespace lockstep::detail {

// Whether these kernels were measured to be faster here than libtorch's
// (benchmarks/notes/2026-11-image-steps.md, 2026-11-avx2.md): products in fp32 on AMD's CPUs from
// AVX2 on, weight gradients from AVX-512 on; both in bf16 on AMD's CPUs with its dot products.
bool own_products_pay(at::ScalarType type);
bool own_gradients_pay(at::ScalarType type);

// Whether the products below are worth using. They take dense matrices, all fp32 or all bf16.
// They do not pay for a few rows, which do not repay the packing; weights that leave the cache,
// such as output tables, are packed in parts and need more rows. A bf16 product over an odd number
// of inputs would need a copy.
bool takes_own_product(const torch::Tensor& x, const torch::Tensor& weight);
bool takes_own_weight_gradient(const torch::Tensor& x, const torch::Tensor& gradient);

// Returns x W^T: x [rows, in], weight [out, in] -> [rows, out].
torch::Tensor own_product_transposed(const torch::Tensor& x, const torch::Tensor& weight);

// Returns d_y W: d_y [rows, out], weight [out, in] -> [rows, in]. If `into` is defined, adds the
// product to it and returns it.
torch::Tensor own_product(const torch::Tensor& d_y, const torch::Tensor& weight,
                          const torch::Tensor& into = {});

// gradient [out, in], fp32, += d_y^T x for d_y [rows, out], x [rows, in]. The
// sums are fp32 throughout.
void add_own_weight_gradient(const torch::Tensor& gradient, const torch::Tensor& d_y,
                             const torch::Tensor& x);

}  // namespace lockstep::detail
