// The gradient of a convolution's weight out of what came back and what went in, added straight to
// fp32: gradient[o, i, tap] += sum over the pixels p of d_y[p, o] * x[p + tap, i].
//
// Stride 1, a kernel of one pixel or of 3 x 3 with one pixel of zeros around: then the pixels of all
// images are one sequence, with a column of zeros behind every line and a line of zeros behind every
// image, and a tap is a shift of x along that sequence.
#pragma once

#include <cstdint>

namespace lockstep {

struct WeightGradientArgs {  // both bf16
  const void* d_y;           // [images, height, width, outputs]
  const void* x;             // [images, height, width, inputs]
  int64_t images, height, width;
  int64_t outputs, inputs;  // multiples of 32
  int64_t taps;             // 1 or 9
  float* gradient;          // [outputs, inputs, taps]
};

// A table without these functions (null) leaves the gradient to libtorch.
struct WeightGradientKernels {
  // The outputs [begin, end), multiples of 32, of them; at most 512 a call. Sums are made in an order
  // that does not depend on begin and end. scratch: scratch_bytes(args, end - begin), aligned to 64
  // bytes, contents do not matter.
  void (*add)(const WeightGradientArgs&, int64_t begin, int64_t end, void* scratch);
  int64_t (*scratch_bytes)(const WeightGradientArgs&, int64_t outputs);
};

}  // namespace lockstep
