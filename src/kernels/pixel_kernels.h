// Declares the CPU kernels of image networks; kernel_table.h says what holds for all kernels.
#pragma once

#include <cstdint>

namespace lockstep {

// Batch norm (nn/batch_norm.h) of x [rows, channels]. Sums over rows are made per block of rows,
// and the callers add the blocks in order, so that no sum depends on the number of threads.
template <class T>
struct BatchNormSumsArgs {
  const T* x;
  int64_t channels;
  float* first;    // [channels]: the block's first row, which is subtracted from x
  float* sum;      // [channels]: of x - first
  float* squares;  // [channels]: of (x - first)^2
};

template <class T>
struct BatchNormArgs {  // y = relu((x - mean) * scale + bias + residual)
  const T* x;
  const float* mean;
  const float* scale;  // weight / sqrt(variance + epsilon)
  const float* bias;
  const T* residual;  // or null
  T* y;
  int64_t channels;
  bool relu;
};

// The gradient behind the ReLU: g = d_y where y > 0. y is what the forward pass kept or, when null,
// computed again from x (there was no residual then).
template <class T>
struct BatchNormMask {
  const T* d_y;
  const T* y;
  bool relu;  // false: g = d_y
};

template <class T>
struct BatchNormBackwardSumsArgs {
  BatchNormMask<T> mask;
  const T* x;
  const float* mean;
  const float* scale;
  const float* bias;
  T* g;            // receives g unless null
  float* sum;      // [channels]: of g
  float* product;  // [channels]: of g * (x - mean)
  int64_t channels;
};

template <class T>
struct BatchNormBackwardArgs {  // d_x = scale * g + slope * (x - mean) + offset
  BatchNormMask<T> mask;
  const T* x;
  const float* mean;
  const float* scale;
  const float* bias;
  const float* slope;
  const float* offset;
  T* d_x;
  int64_t channels;
};

// The weight of a convolution is stored as [outputs, inputs, taps] (taps: the pixels of its
// kernel); products use it as [outputs, taps, inputs].
template <class T>
struct MoveTapsArgs {
  const T* from;
  T* to;  // [outputs, taps, inputs]
  int64_t inputs, taps;
};
template <class T>
struct AddTapsArgs {  // to += from
  const T* from;      // [outputs, taps, inputs]
  float* to;
  int64_t inputs, taps;
};

template <class T>
struct AveragePoolArgs {  // y = mean over the pixels of x [images, pixels, channels]
  const T* x;
  T* y;  // [images, channels]
  int64_t pixels, channels;
};
template <class T>
struct AveragePoolBackwardArgs {
  const T* d_y;
  T* d_x;
  int64_t pixels, channels;
};

template <class T>
struct PixelKernels {
  void (*batch_norm_sums)(const BatchNormSumsArgs<T>&, int64_t begin, int64_t end);
  void (*batch_norm)(const BatchNormArgs<T>&, int64_t begin, int64_t end);
  void (*batch_norm_backward_sums)(const BatchNormBackwardSumsArgs<T>&, int64_t begin, int64_t end);
  void (*batch_norm_backward)(const BatchNormBackwardArgs<T>&, int64_t begin, int64_t end);
  // [begin, end) counts outputs.
  void (*move_taps)(const MoveTapsArgs<T>&, int64_t begin, int64_t end);
  void (*add_taps)(const AddTapsArgs<T>&, int64_t begin, int64_t end);
  // [begin, end) counts images.
  void (*average_pool)(const AveragePoolArgs<T>&, int64_t begin, int64_t end);
  void (*average_pool_backward)(const AveragePoolBackwardArgs<T>&, int64_t begin, int64_t end);
};

}  // namespace lockstep
