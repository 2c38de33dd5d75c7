// The gradient of a convolution's weight out of what came back and what went in, added straight to
// fp32: gradient[o, i, tap] += sum over the pixels p of d_y[p, o] * x[p + tap, i].
//
// Stride 1, a kernel of one pixel or of 3 x 3 with one pixel of zeros around: then the pixels of
// all images are one sequence, with a column of zeros behind every line and a line of zeros behind
// every image, and a tap is a shift of x along that sequence.
#pragma once

#include <cstdint>

namespace lockstep {

struct WeightGradientArgs {  // both bf16
  const void* d_y;           // [images, lines, columns, outputs]
  const void* x;             // [images, height, width, inputs]
  int64_t images, height, width;
  int64_t outputs, inputs;  // multiples of 32
  int64_t taps;             // 1 or 9
  int64_t stride;           // 1, or 2 with 9 taps
  float* gradient;          // [outputs, inputs, taps]
};

// The part of a gradient that one call computes; all multiples of 32. Sums are made in an order
// that does not depend on how a gradient is divided.
struct WeightGradientPart {
  int64_t output_begin, output_end;
  int64_t input_begin, input_end;
};

// A table without these functions (null) leaves the gradient to libtorch.
struct WeightGradientKernels {
  // scratch: scratch_bytes(), aligned to 64 bytes, contents do not matter.
  void (*add)(const WeightGradientArgs&, const WeightGradientPart&, void* scratch) = nullptr;
  int64_t (*scratch_bytes)(const WeightGradientArgs&, const WeightGradientPart&) = nullptr;
};

}  // namespace lockstep
