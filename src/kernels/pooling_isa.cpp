// Computes average pooling over all pixels.
#include "kernels/isa_math.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

constexpr int64_t kStrip = 64;  // channels at a time

template <class T>
void average_pool(const AveragePoolArgs<T>& a, int64_t begin, int64_t end) {
  const float share = 1.0f / static_cast<float>(a.pixels);
  for (int64_t image = begin; image < end; ++image) {
    for (int64_t first = 0; first < a.channels; first += kStrip) {
      const int64_t count = smaller(kStrip, a.channels - first);
      alignas(64) float sum[kStrip] = {};
      const T* x = a.x + image * a.pixels * a.channels + first;
      for (int64_t p = 0; p < a.pixels; ++p, x += a.channels) {
#pragma omp simd
        for (int64_t j = 0; j < count; ++j) sum[j] += to_float(x[j]);
      }
      T* y = a.y + image * a.channels + first;
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) y[j] = from_float<T>(sum[j] * share);
    }
  }
}

template <class T>
void average_pool_backward(const AveragePoolBackwardArgs<T>& a, int64_t begin, int64_t end) {
  const float share = 1.0f / static_cast<float>(a.pixels);
  for (int64_t image = begin; image < end; ++image) {
    const T* d_y = a.d_y + image * a.channels;
    for (int64_t p = 0; p < a.pixels; ++p) {
      T* d_x = a.d_x + (image * a.pixels + p) * a.channels;
#pragma omp simd
      for (int64_t j = 0; j < a.channels; ++j) d_x[j] = from_float<T>(to_float(d_y[j]) * share);
    }
  }
}

template <class T>
void fill_typed(TypedKernels<T>& table) {
  table.average_pool = average_pool<T>;
  table.average_pool_backward = average_pool_backward<T>;
}

}  // namespace

void fill_pooling(Kernels& table) {
  fill_typed(table.fp32);
  fill_typed(table.bf16);
  fill_typed(table.fp16);
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
