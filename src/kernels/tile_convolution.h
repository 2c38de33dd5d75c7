// Declares convolution with kernels of one pixel, or of 3 x 3 with one pixel of zero padding, in
// bf16 with fp32 sums, for images whose channels are innermost; also the sums that a batch norm
// after it needs. With stride 1 the same function computes the gradient of x: it convolves d_y with
// the weight packed for that.
#pragma once

#include <cstdint>

namespace lockstep {

struct TileWeightArgs {
  const void* weight;  // bf16 [rows, columns, taps]: outputs and inputs of the network's layer
  int64_t rows, columns, taps;
  bool backward;  // packs for the gradient of x: inputs are the rows, outputs the columns
  void* packed;   // bf16, the same number of elements; aligned to 64 bytes
};

struct TileConvolutionArgs {
  const void* x;  // bf16 [images, height, width, inputs]
  int64_t images, height, width;
  int64_t inputs, outputs;  // multiples of 32
  int64_t taps;             // 1 or 9
  int64_t stride;           // 1, or 2 with 9 taps
  const void* weight;       // packed
  void* y;                  // bf16 [images, lines, columns, outputs]
  bool adds;                // adds to what is in y
  // [chunks, outputs], or null, always null with `adds`: for each chunk the value y of its first
  // pixel, and the sums of (y - first) and of its square over its pixels.
  float *first, *sum, *squares;
  int64_t* pixels;  // [chunks]: pixels in the chunk, possibly 0; set with the sums
};

struct TileConvolutionPart {
  int64_t chunk_begin, chunk_end;
  int64_t output_begin, output_end;  // multiples of 32
};

// Where a table has no such functions (null), libtorch does the convolution.
struct TileConvolutionKernels {
  // [begin, end) counts outputs of the convolution that the weight is packed for, multiples of 16.
  void (*pack)(const TileWeightArgs&, int64_t begin, int64_t end) = nullptr;
  // `scratch` has scratch_bytes(), is aligned to 64 bytes and needs no initial contents.
  void (*convolve)(const TileConvolutionArgs&, const TileConvolutionPart&, void* scratch) = nullptr;
  int64_t (*scratch_bytes)(const TileConvolutionArgs&) = nullptr;
  // Returns the number of chunks into which the pixels are divided; it depends on
  // nothing but the shape.
  int64_t (*chunks)(const TileConvolutionArgs&) = nullptr;
};

}  // namespace lockstep
