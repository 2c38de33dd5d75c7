// Computes the gradient of a convolution's weight from the gradient of its result and its
// input, and adds it straight to fp32: gradient[o, i, tap] += sum over the pixels p of
// d_y[p, o] * x[p + tap, i].
//
// The kernel is of one pixel, or of 3 x 3 with one pixel of zero padding. With stride 1 the
// pixels of all images are one sequence, with a column of zeros after every line and a line
// of zeros after every image, and a tap is a shift of x along that sequence.
// pixel_sequence_isa.h describes stride 2.
#pragma once

#include <cstdint>

namespace lockstep {

struct WeightGradientArgs {  // d_y and x are bf16
  const void* d_y;           // [images, lines, columns, outputs]
  const void* x;             // [images, height, width, inputs]
  int64_t images, height, width;
  int64_t outputs, inputs;  // multiples of 32
  int64_t taps;             // 1 or 9
  int64_t stride;           // 1, or 2 with 9 taps
  float* gradient;          // [outputs, inputs, taps]
};

// The part of a gradient that one call computes; all bounds are multiples of 32. The order of the
// sums does not depend on how a gradient is divided.
struct WeightGradientPart {
  int64_t output_begin, output_end;
  int64_t input_begin, input_end;
};

// Where a table has no such functions (null), libtorch computes the gradient.
struct WeightGradientKernels {
  // `scratch` has scratch_bytes(), is aligned to 64 bytes and needs no initial contents.
  void (*add)(const WeightGradientArgs&, const WeightGradientPart&, void* scratch) = nullptr;
  int64_t (*scratch_bytes)(const WeightGradientArgs&, const WeightGradientPart&) = nullptr;
};

}  // namespace lockstep
