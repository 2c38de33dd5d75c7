// Declares products x W^T + b whose weight is laid out in the order in which the kernel reads it.
// For inference it is packed once, for training at each product (nn/own_product.h). Weights are
// fp32, bf16 or int8; x has the same type, except that it is unsigned bytes for int8. The kernels
// are in packed_product_dot_isa.cpp and panel_packing_isa.cpp.
//
// Layout: outputs are in panels of kPanelOutputs, or of fewer where the weight is packed for one
// product. Within a panel, inputs are in groups of 4 bytes (1 fp32, 2 bf16 or 4 int8 neighbours),
// and for every group those of the panel's outputs lie side by side. Zeros fill up the last panel
// and the last group.
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

// What a product does with y = x W^T + b.
enum class ProductEnd {
  kStore,      // out = y, fp32 or bf16
  kStoreRelu,  // out = max(y, 0)
  kAdd,        // out += y
};

struct PackedProductArgs {
  const void* x;     // rows of `groups` groups of 4 bytes
  int64_t x_stride;  // bytes between rows
  int64_t groups;    // in a row of x and in an output of the weight
  const void* panels;
  int64_t outputs;
  const float* bias;  // [outputs], padded to whole panels; null for none (not with int8)
  // int8 only: row_scale [rows], scale and offset [outputs], both padded to whole panels.
  const float* row_scale;
  const float* scale;
  const int32_t* offset;
  ProductEnd end;
  bool out_is_bf16;
  void* out;
  int64_t out_stride;                     // elements between rows
  int64_t x_step = 4;                     // bytes between the groups of a row
  int64_t panel_outputs = kPanelOutputs;  // a multiple of PackedProductKernels::tile_outputs
};

// The rows and panels that one call computes. Column 0 of `out` is the first output of panel_begin.
struct PackedProductRange {
  int64_t row_begin, row_end;
  int64_t panel_begin, panel_end;
};

using PackedProductFunction = void (*)(const PackedProductArgs&, const PackedProductRange&);

struct QuantiseRowsArgs {  // how the x of an int8 product is quantised
  const float* x;          // [rows, width], dense
  int64_t width;
  uint8_t* out;      // [rows, stride]; from the width on 128, which stands for zero
  int64_t stride;    // bytes, at least width
  float* row_scale;  // [rows]: largest magnitude / 127, or 1 for a row of zeros
};

struct PackPanelsArgs {
  const void* from;  // weight(output, input) at output * output_stride + input * input_stride
  int64_t outputs, inputs;
  int64_t output_stride, input_stride;  // elements; one of them is 1
  void* panels;
  int64_t panel_outputs = kPanelOutputs;  // at most that many
};

struct PackedProductKernels {
  PackedProductFunction fp32, bf16, int8;
  void (*quantise_rows)(const QuantiseRowsArgs&, int64_t begin, int64_t end);
  // These pack the panels [begin, end).
  void (*pack_fp32)(const PackPanelsArgs&, int64_t begin, int64_t end);
  void (*pack_bf16)(const PackPanelsArgs&, int64_t begin, int64_t end);
  // What a kernel computes at once: a panel as wide is read from its first byte to its last.
  int64_t tile_outputs;
};

}  // namespace lockstep
