// Convolution of single pixels, or of 3 x 3 with one pixel of zeros around, in bf16 with fp32 sums,
// for pixels with their channels beside each other; and what a batch norm behind it needs to know
// of the result. With stride 1 the same function makes the gradient of x: of d_y, with the weight
// packed for it.
#pragma once

#include <cstdint>

namespace lockstep {

struct TileWeightArgs {
  const void* weight;  // bf16 [rows, columns, taps]: outputs and inputs of the network's layer
  int64_t rows, columns, taps;
  bool backward;  // for the gradient of x: its inputs are the rows, its outputs the columns
  void* packed;   // bf16, as many; aligned to 64 bytes
};

struct TileConvolutionArgs {
  const void* x;  // bf16 [images, height, width, inputs]
  int64_t images, height, width;
  int64_t inputs, outputs;  // multiples of 32
  int64_t taps;             // 1 or 9
  int64_t stride;           // 1, or 2 with 9 taps
  const void* weight;       // packed
  void* y;                  // bf16 [images, lines, columns, outputs]
  bool adds;                // to what is in y
  // [chunks, outputs], or null, as with `adds`: of the pixels of a chunk the first one's values,
  // and the sums of (y - first) and of its squares.
  float *first, *sum, *squares;
  int64_t* pixels;  // [chunks]: how many there are, 0 possible; with the sums
};

struct TileConvolutionPart {
  int64_t chunk_begin, chunk_end;
  int64_t output_begin, output_end;  // multiples of 32
};

// A table without these functions (null) leaves the convolution to libtorch.
struct TileConvolutionKernels {
  // [begin, end): of the outputs of the convolution that the weight is packed for, multiples of 16.
  void (*pack)(const TileWeightArgs&, int64_t begin, int64_t end) = nullptr;
  // scratch: scratch_bytes(), aligned to 64 bytes, contents do not matter.
  void (*convolve)(const TileConvolutionArgs&, const TileConvolutionPart&, void* scratch) = nullptr;
  int64_t (*scratch_bytes)(const TileConvolutionArgs&) = nullptr;
  // The pixels are done in chunks, which depend on nothing but the shape.
  int64_t (*chunks)(const TileConvolutionArgs&) = nullptr;
};

}  // namespace lockstep
