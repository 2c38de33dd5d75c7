// Convolution of 3 x 3, stride 1, one pixel of zeros around, by Winograd's minimal filtering F(4x4,
// 3x3) (Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural Networks", section 4.1): a
// square of 4 x 4 pixels of the result is made of a patch of 6 x 6 of x with 36 products in place
// of 144, each of the 36 places a matrix product over the channels. The gradient of the weight is
// F(3x3, 4x4): the same patches, with squares of what came back in place of the weight.
//
// The points of the interpolation are 0, 5/8, -5/8, 3/2, -3/2 and infinity: rounding errors are
// less than half of those with 1 and 2. Transformed numbers have the type of x, all sums are fp32.
// So a bf16 result has noise of 1.1 % (of its standard deviation) from the rounding of both sides;
// a plain convolution of bf16, 0.2 % (benchmarks/notes/2026-11-image-steps.md).
//
// Squares are numbered by image, line, column; those at the right and lower edge may reach beyond.
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

// Where the numbers of a square lie: place p, channel c of the i-th square of a call at p * place +
// c / 64 * panel + i * square + c % 64, c counted from the first channel. With `grouped` a bf16 c
// stands for two neighbouring squares, as the groups of packed_product.h: i / 2 and 2 * (c % 64) +
// i % 2 in place of i and c % 64; zeros behind an odd number.
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
  bool grouped;  // of patches; squares are
};

template <class T>
struct WinogradWeightArgs {
  const T* weight;        // [rows, columns, 9]: outputs and inputs of the network's layer
  int64_t rows, columns;  // multiples of 64
  bool backward;          // for the gradient of x: its inputs are the rows, its outputs the columns
  T* packed;              // [outputs / 64, 36], each a panel of packed_product.h
};

template <class T>
struct WinogradResultArgs {
  const float* products;  // of 64 channels, by `strides`
  WinogradStrides strides;
  T* y;
  WinogradImages shape;   // of y
  int64_t first_channel;  // a multiple of 64
  bool adds;              // to what is in y
  // [64] each, or null, as with `adds`: the values of the first pixel written, the sums of (y -
  // first) and of its square.
  float *first, *sum, *squares;
};

struct WinogradGradientArgs {  // gradient += what the products say
  const float* products;       // [36, outputs, inputs]
  int64_t outputs, inputs;
  float* gradient;  // [outputs, inputs, 9]
};

template <class T>
struct WinogradKernels {
  // Patches of x, or squares of d_y, [begin, end).
  void (*patches)(const WinogradSquaresArgs<T>&, int64_t begin, int64_t end);
  void (*squares)(const WinogradSquaresArgs<T>&, int64_t begin, int64_t end);
  void (*result)(const WinogradResultArgs<T>&, int64_t begin, int64_t end);
  // The panels [begin, end) of 64 outputs.
  void (*weight)(const WinogradWeightArgs<T>&, int64_t begin, int64_t end);
};

}  // namespace lockstep
