// Declares kernels that resize images as Pillow does (8-bit images, coefficients and sums in fixed
// point with 22 fractional bits, rows first, 8 bits between the two passes) and convert their
// pixels to a tensor.
#pragma once

#include <cstdint>

namespace lockstep {

// One axis of a resize: output i is the sum over k < counts[i] of weights[i * taps + k] times input
// begins[i] + k, in units of 2^-22.
struct ResizeAxisArgs {
  int64_t size = 0;  // outputs
  int64_t taps = 0;
  const int32_t* begins = nullptr;   // [size]
  const int32_t* counts = nullptr;   // [size], 1 to taps
  const int32_t* weights = nullptr;  // [size, taps]
};

// Resizes rows of 4-byte pixels [rows, width, 4]: each becomes axis.size pixels of 3 bytes.
struct ResizeRowsArgs {
  ResizeAxisArgs axis;
  const uint8_t* in = nullptr;
  int64_t in_stride = 0;  // bytes from row to row
  int64_t in_width = 0;   // pixels
  uint8_t* out = nullptr;
  int64_t out_stride = 0;      // bytes; at least 3 * axis.size + 1: a byte past a row is written
  bool mirror = false;         // writes the outputs in reverse order
  uint8_t* scratch = nullptr;  // resize_rows_scratch(in_width) bytes
};
constexpr int64_t kResizeBlockRows = 8;
constexpr int64_t resize_rows_scratch(int64_t in_width) { return in_width * kResizeBlockRows * 4; }

// Resizes columns of bytes [rows, width_bytes]: each becomes axis.size bytes.
struct ResizeColumnsArgs {
  ResizeAxisArgs axis;
  const uint8_t* in = nullptr;
  int64_t in_stride = 0;
  uint8_t* out = nullptr;
  int64_t out_stride = 0;
  int64_t width_bytes = 0;
};

// out[i] = (weight * x[i] + (1 - weight) * other[i]) * scale[i] + shift[i]
template <class T>
struct NormalizeArgs {
  const uint8_t* x = nullptr;
  const uint8_t* other = nullptr;  // null: x alone
  float weight = 1;
  const float* scale = nullptr;  // [n]
  const float* shift = nullptr;  // [n]
  T* out = nullptr;
  int64_t n = 0;
};

struct Bf16;
struct Fp16;

struct ImageKernels {
  void (*resize_rows)(const ResizeRowsArgs&, int64_t begin, int64_t end);        // input rows
  void (*resize_columns)(const ResizeColumnsArgs&, int64_t begin, int64_t end);  // output rows
  void (*normalize_fp32)(const NormalizeArgs<float>&);
  void (*normalize_bf16)(const NormalizeArgs<Bf16>&);
  void (*normalize_fp16)(const NormalizeArgs<Fp16>&);
};

}  // namespace lockstep
