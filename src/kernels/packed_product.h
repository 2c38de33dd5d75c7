// Products x W^T + b with a weight laid out in the order in which the kernel reads it: once for
// inference, at each product for training (nn/own_product.h). fp32, bf16 or int8 weights; x of the
// same kind, but unsigned bytes for int8. The kernel files are packed_product_dot_isa.cpp and
// panel_packing_isa.cpp.
//
// Layout: outputs in panels of kPanelOutputs. Within a panel, inputs in groups of 4 bytes (1 fp32,
// 2 bf16 or 4 int8 neighbours); for every group those of the panel's outputs side by side. What is
// missing of the last panel and of the last group is zero.
//
// int8: weight[o, i] = scale[o] * q[o, i] with q in [-127, 127]; x[r, i] = row_scale[r] * (u[r, i]
// - 128) with u in [1, 255]. The sums over i are exact integers, so the result is the same on every
// instruction set up to the rounding of the last steps: (sum of u q - offset[o]) * row_scale[r] *
// scale[o] + bias[o], offset[o] = 128 * sum over i of q[o, i].
#pragma once

#include <cstdint>

namespace lockstep {

constexpr int64_t kPanelOutputs = 64;

enum class WeightFormat { kFp32, kBf16, kInt8 };

// What is done with y = x W^T + b.
enum class ProductEnd {
  kStore,      // out = y, fp32 or bf16
  kStoreRelu,  // out = max(y, 0)
  kAdd,        // out += y
};

struct PackedProductArgs {
  const void* x;     // rows of `groups` groups of 4 bytes
  int64_t x_stride;  // bytes between rows
  int64_t groups;    // of a row and of an output
  const void* panels;
  int64_t outputs;
  const float* bias;  // [outputs], padded to whole panels; or null but for int8: none
  // int8 only: [rows]; [outputs] and [outputs], padded to whole panels.
  const float* row_scale;
  const float* scale;
  const int32_t* offset;
  ProductEnd end;
  bool out_is_bf16;
  void* out;
  int64_t out_stride;  // elements between rows
  int64_t x_step = 4;  // bytes between the groups of a row
};

// The part of `rows` and panels that one call computes. out's first column is that of first_panel.
struct PackedProductRange {
  int64_t row_begin, row_end;
  int64_t panel_begin, panel_end;
};

using PackedProductFunction = void (*)(const PackedProductArgs&, const PackedProductRange&);

struct QuantiseRowsArgs {  // the x of an int8 product
  const float* x;          // [rows, width], dense
  int64_t width;
  uint8_t* out;      // [rows, stride]; 128, a zero, behind the width
  int64_t stride;    // bytes, at least width
  float* row_scale;  // [rows]: largest magnitude / 127, or 1 for a row of zeros
};

struct PackPanelsArgs {
  const void* from;  // weight(output, input) at output * output_stride + input * input_stride
  int64_t outputs, inputs;
  int64_t output_stride, input_stride;  // elements; one of them is 1
  void* panels;
};

struct PackedProductKernels {
  PackedProductFunction fp32, bf16, int8;
  void (*quantise_rows)(const QuantiseRowsArgs&, int64_t begin, int64_t end);
  // The panels [begin, end).
  void (*pack_fp32)(const PackPanelsArgs&, int64_t begin, int64_t end);
  void (*pack_bf16)(const PackPanelsArgs&, int64_t begin, int64_t end);
};

}  // namespace lockstep
