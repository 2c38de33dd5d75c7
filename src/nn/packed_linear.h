// Computes y = x W^T + b for inference on the CPU. The weight is copied once into the order in
// which the kernels of kernels/packed_product.h read it, as fp32, bf16 or int8. No autograd.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "kernels/packed_product.h"

namespace lockstep {

// The type of the activations between products: fp32 for fp32 and int8 weights, bf16 for bf16.
inline at::ScalarType activation_type(WeightFormat format) {
  return format == WeightFormat::kBf16 ? at::kBFloat16 : at::kFloat;
}

// The input of a product, prepared once for several products: with int8, the rows are rounded to 8
// bits, each with a scale of its own.
struct PackedInput {
  torch::Tensor x;          // rows of bytes, dense
  torch::Tensor row_scale;  // fp32 [rows], int8 only
  int64_t rows() const { return x.size(0); }
};

class PackedLinear {
 public:
  PackedLinear() = default;
  // weight fp32 [outputs, inputs]; bias fp32 [outputs] or undefined. int8 is symmetric with a scale
  // for every output. Weight and bias are copied.
  PackedLinear(const torch::Tensor& weight, const torch::Tensor& bias, WeightFormat format);

  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  int64_t bytes() const;  // of weight, scales and bias

  // x [rows, inputs] of the activation type, dense. The result may share x's memory.
  PackedInput prepare(const torch::Tensor& x) const;

  // These return y [rows, outputs] of the activation type.
  torch::Tensor operator()(const torch::Tensor& x) const { return store(prepare(x), false); }
  torch::Tensor store(const PackedInput& x, bool relu) const;  // relu: max(y, 0)
  // stream += y, fp32 [rows, outputs], dense.
  void add_to(const torch::Tensor& stream, const torch::Tensor& x) const;
  // Computes the outputs [first, first + count) into out, fp32 [rows, at least count], dense.
  // REQUIRES that first is a multiple of kPanelOutputs, and count too except for the last outputs.
  void store_part(const PackedInput& x, int64_t first, int64_t count,
                  const torch::Tensor& out) const;

 private:
  struct Part {
    int64_t first_panel, last_panel;
  };
  void multiply(const PackedInput& x, const torch::Tensor& out, ProductEnd end, Part part) const;
  int64_t panels() const { return (outputs_ + kPanelOutputs - 1) / kPanelOutputs; }

  WeightFormat format_ = WeightFormat::kFp32;
  int64_t inputs_ = 0, outputs_ = 0, groups_ = 0;
  torch::Tensor panels_;                 // bytes
  torch::Tensor bias_, scale_, offset_;  // padded to whole panels; the last two int8 only
};

}  // namespace lockstep
