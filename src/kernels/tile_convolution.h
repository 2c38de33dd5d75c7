// Convolution of 3 x 3 pixels with stride 1 and one pixel of zeros around, in bf16 with fp32 sums,
// for pixels with their channels beside each other. The same function makes the gradient of x: of
// d_y, with the weight packed for it.
#pragma once

#include <cstdint>

namespace lockstep {

struct TileWeightArgs {
  const void* weight;  // bf16 [rows, columns, 9]: outputs, inputs and taps of the network's layer
  int64_t rows, columns;
  bool backward;  // for the gradient of x: its inputs are the rows, its outputs the columns
  void* packed;   // bf16, as many; aligned to 64 bytes
};

struct TileConvolutionArgs {
  const void* x;  // bf16 [images, height, width, inputs]
  int64_t images, height, width;
  int64_t inputs, outputs;  // multiples of 32
  const void* weight;       // packed
  void* y;                  // bf16 [images, height, width, outputs]
};

struct TileConvolutionPart {
  int64_t image_begin, image_end;
  int64_t output_begin, output_end;  // multiples of 32
};

// A table without these functions (null) leaves the convolution to libtorch.
struct TileConvolutionKernels {
  // [begin, end): of the outputs of the convolution that the weight is packed for, multiples of 16.
  void (*pack)(const TileWeightArgs&, int64_t begin, int64_t end) = nullptr;
  // scratch: scratch_bytes(), aligned to 64 bytes, contents do not matter.
  void (*convolve)(const TileConvolutionArgs&, const TileConvolutionPart&, void* scratch) = nullptr;
  int64_t (*scratch_bytes)(const TileConvolutionArgs&) = nullptr;
};

}  // namespace lockstep
