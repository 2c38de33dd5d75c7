// Computes y = x W^T + b for inference on the CPU. The weight lies in the order in which the
// kernels of kernels/packed_product.h read it, as fp32, bf16 or int8: it is packed here, once, or
// mapped from a file that has it so (edge/edge_file.h).
#pragma once

#include <cstdint>
#include <memory>

#include "decode/row_memory.h"
#include "decode/threads.h"
#include "kernels/kernel_table.h"

namespace lockstep {

// The input of a product, prepared once for several products. It may refer to the x that it was
// made from.
struct PackedInput {
  const void* x = nullptr;           // rows of whole groups
  int64_t rows = 0, stride = 0;      // stride: bytes
  const float* row_scale = nullptr;  // [rows], int8 only
  RowMemory own_x, own_scale;
};

// A matrix as it lies in memory.
struct PackedMatrix {
  WeightFormat format = WeightFormat::kFp32;
  int64_t outputs = 0, inputs = 0;
  const void* panels = nullptr;
  const float* bias = nullptr;      // [padded outputs]
  const float* scale = nullptr;     // [padded outputs], int8 only
  const int32_t* offset = nullptr;  // the same

  int64_t padded_outputs() const {
    return (outputs + kPanelOutputs - 1) / kPanelOutputs * kPanelOutputs;
  }
  int64_t inputs_in_group() const {
    return format == WeightFormat::kFp32 ? 1 : format == WeightFormat::kBf16 ? 2 : 4;
  }
  int64_t groups() const { return (inputs + inputs_in_group() - 1) / inputs_in_group(); }
  int64_t panel_bytes() const { return 4 * groups() * padded_outputs(); }
};

class PackedLinear {
 public:
  PackedLinear() = default;
  // weight fp32 [outputs, inputs]; bias fp32 [outputs] or null. int8 is symmetric with a scale for
  // every output. Weight and bias are copied.
  struct Weight {
    const float* values;
    const float* bias;
    int64_t outputs, inputs;
  };
  PackedLinear(const Weight& weight, WeightFormat format, const Threads& threads);
  // Refers to a matrix that outlives this.
  explicit PackedLinear(const PackedMatrix& matrix) : matrix_(matrix) {}

  int64_t inputs() const { return matrix_.inputs; }
  int64_t outputs() const { return matrix_.outputs; }
  const PackedMatrix& matrix() const { return matrix_; }
  int64_t bytes() const;  // of weight, scales and bias

  // x [rows, inputs] of the activation type, dense: bf16 with bf16 weights, else fp32.
  void prepare(const void* x, int64_t rows, PackedInput& out, const Threads& threads) const;

  // out [rows, outputs] of the activation type, dense: out = y, max(y, 0) or, with kAdd, out fp32
  // += y.
  void multiply(const PackedInput& x, ProductEnd end, void* out, const Threads& threads) const;

  // Computes the outputs [first, first + count) into out, fp32 [rows, stride].
  // REQUIRES that first is a multiple of kPanelOutputs, and count too except for the last outputs.
  struct Part {
    int64_t first, count;
  };
  void multiply_part(const PackedInput& x, const Part& part, float* out, int64_t stride,
                     const Threads& threads) const;

  // Returns the weights of one output as they count in a product: fp32 [inputs].
  void weights_of(int64_t output, float* out) const;

 private:
  struct Output {
    ProductEnd end;
    bool is_bf16;
    void* data;
    int64_t stride;
  };
  struct Panels {
    int64_t first, last;
  };
  void run(const PackedInput& x, const Output& out, const Panels& panels,
           const Threads& threads) const;

  PackedMatrix matrix_;
  std::shared_ptr<const RowMemory> memory_;  // of a matrix that was packed here
};

}  // namespace lockstep
