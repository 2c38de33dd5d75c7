// Declares convolution of 3 x 3, stride 1, one pixel of zero padding, by Winograd's minimal
// filtering F(4x4, 3x3) (Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural Networks",
// section 4.1): a square of 4 x 4 pixels of the result is made from a patch of 6 x 6 of x with 36
// products instead of 144; each of the 36 places is a matrix product over the channels. The
// gradient of the weight is F(3x3, 4x4): the same patches, with squares of the result's gradient in
// place of the weight.
//
// The points of the interpolation are 0, 5/8, -5/8, 3/2, -3/2 and infinity: rounding errors are
// less than half of those with 1 and 2. Transformed numbers have the type of x, all sums are fp32.
// So rounding both factors gives a bf16 result noise of 1.1 % (of its standard deviation); a plain
// convolution in bf16 has 0.2 % (benchmarks/notes/2026-11-image-steps.md).
//
// Squares are numbered by image, line, column; those at the right and lower edges may reach beyond
// the image.
#pragma once

#include <cstdint>

namespace lockstep {

constexpr int64_t kWinogradPlaces = 36;
constexpr int64_t kWinogradSquare = 4;

struct WinogradImages {  // [images, height, width, channels]
  int64_t images, height, width, channels;

  int64_t lines() const { return (height + kWinogradSquare - 1) / kWinogradSquare; }
  int64_t columns() const { return (width + kWinogradSquare - 1) / kWinogradSquare; }
  int64_t squares() const { return images * lines() * columns(); }
};

// Where the numbers of a square are stored: place p, channel c of the i-th square of a call is at
// p * place + c / 64 * panel + i * square + c % 64, with c counted from the first channel. With
// `grouped`, a bf16 panel holds two neighbouring squares together, as the groups of
// packed_product.h do: i / 2 and 2 * (c % 64) + i % 2 replace i and c % 64, and zeros fill up an
// odd number of squares.
struct WinogradStrides {
  int64_t place, panel, square;
};

template <class T>
struct WinogradSquaresArgs {
  const T* x;
  WinogradImages shape;
  int64_t channel_begin, channel_end;  // multiples of 64, or of 16 within one panel
  const T* zeros;                      // [channels]
  T* out;
  WinogradStrides strides;
  bool grouped;  // of patches; squares are always grouped
};

template <class T>
struct WinogradWeightArgs {
  const T* weight;        // [rows, columns, 9]: outputs and inputs of the network's layer
  int64_t rows, columns;  // multiples of 64
  bool backward;          // packs for the gradient of x: inputs are the rows, outputs the columns
  T* packed;      // [outputs / 64, 36, place], each place begins with a panel of packed_product.h
  int64_t place;  // at least 64 * inputs; powers of two fall on the same cache lines
};

template <class T>
struct WinogradResultArgs {
  const float* products;  // [36] of 64 channels, placed by `strides`
  WinogradStrides strides;
  T* y;
  WinogradImages shape;   // of y
  int64_t first_channel;  // a multiple of 64
  bool adds;              // adds to what is in y
  // [64] each, or null, always null with `adds`: the value y of the first pixel written, and the
  // sums of (y - first) and of its square.
  float *first, *sum, *squares;
};

struct WinogradGradientArgs {  // adds the transformed products to the gradient
  const float* products;       // [36, outputs, inputs]
  int64_t outputs, inputs;
  float* gradient;  // [outputs, inputs, 9]
};

template <class T>
struct WinogradKernels {
  // These transform patches of x, or squares of d_y, [begin, end).
  void (*patches)(const WinogradSquaresArgs<T>&, int64_t begin, int64_t end);
  void (*squares)(const WinogradSquaresArgs<T>&, int64_t begin, int64_t end);
  void (*result)(const WinogradResultArgs<T>&, int64_t begin, int64_t end);
  // Packs the panels [begin, end) of 64 outputs.
  void (*weight)(const WinogradWeightArgs<T>&, int64_t begin, int64_t end);
};

}  // namespace lockstep
