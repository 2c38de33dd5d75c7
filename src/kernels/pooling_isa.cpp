// Computes max pooling over 3 x 3 pixels with stride 2 and padding 1, and average
// pooling over all pixels.
#include "kernels/isa_math.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

constexpr int64_t kStrip = 64;  // channels at a time

struct Span {
  int64_t begin, end;
};

// Returns the lines or columns of the square around pixel 2 * i that are within [0, size).
inline Span square(int64_t i, int64_t size) {
  return {i > 0 ? 2 * i - 1 : 0, smaller(2 * i + 2, size)};
}
// Returns the squares that contain pixel i.
inline Span squares_of(int64_t i, int64_t count) {
  return {i / 2, smaller((i + 1) / 2 + 1, count)};
}

template <class T>
void max_pool(const MaxPoolArgs<T>& a, int64_t begin, int64_t end) {
  const int64_t lines = (a.height + 1) / 2, columns = (a.width + 1) / 2;
  for (int64_t r = begin; r < end; ++r) {
    const int64_t line = r % lines;
    const T* image = a.x + r / lines * a.height * a.width * a.channels;
    const Span rows = square(line, a.height);
    for (int64_t column = 0; column < columns; ++column) {
      const Span pixels = square(column, a.width);
      const int64_t out = (r * columns + column) * a.channels;
      for (int64_t first = 0; first < a.channels; first += kStrip) {
        const int64_t count = smaller(kStrip, a.channels - first);
        alignas(64) float largest[kStrip];
        alignas(64) int32_t chosen[kStrip];
        bool is_first = true;
        for (int64_t i = rows.begin; i < rows.end; ++i) {
          for (int64_t k = pixels.begin; k < pixels.end; ++k) {
            const T* x = image + (i * a.width + k) * a.channels + first;
            const int32_t here =
                static_cast<int32_t>((i - (2 * line - 1)) * 3 + k - (2 * column - 1));
            if (is_first) {
              is_first = false;
#pragma omp simd
              for (int64_t j = 0; j < count; ++j) {
                largest[j] = to_float(x[j]);
                chosen[j] = here;
              }
              continue;
            }
#pragma omp simd
            for (int64_t j = 0; j < count; ++j) {
              const float v = to_float(x[j]);
              const bool larger = v > largest[j] || v != v;  // a NaN wins, as in libtorch
              largest[j] = larger ? v : largest[j];
              chosen[j] = larger ? here : chosen[j];
            }
          }
        }
#pragma omp simd
        for (int64_t j = 0; j < count; ++j) {
          a.y[out + first + j] = from_float<T>(largest[j]);
          a.chosen[out + first + j] = static_cast<uint8_t>(chosen[j]);
        }
      }
    }
  }
}

template <class T>
void max_pool_backward(const MaxPoolBackwardArgs<T>& a, int64_t begin, int64_t end) {
  const int64_t lines = (a.height + 1) / 2, columns = (a.width + 1) / 2;
  for (int64_t r = begin; r < end; ++r) {
    const int64_t image = r / a.height, line = r % a.height;
    const Span rows = squares_of(line, lines);
    for (int64_t k = 0; k < a.width; ++k) {
      const Span pixels = squares_of(k, columns);
      T* d_x = a.d_x + (r * a.width + k) * a.channels;
      for (int64_t first = 0; first < a.channels; first += kStrip) {
        const int64_t count = smaller(kStrip, a.channels - first);
        alignas(64) float sum[kStrip] = {};
        for (int64_t i = rows.begin; i < rows.end; ++i) {
          for (int64_t p = pixels.begin; p < pixels.end; ++p) {
            const int64_t at = ((image * lines + i) * columns + p) * a.channels + first;
            const T* d_y = a.d_y + at;
            const uint8_t* chosen = a.chosen + at;
            const int32_t here = static_cast<int32_t>((line - (2 * i - 1)) * 3 + k - (2 * p - 1));
#pragma omp simd
            for (int64_t j = 0; j < count; ++j) {
              sum[j] += chosen[j] == here ? to_float(d_y[j]) : 0.0f;
            }
          }
        }
#pragma omp simd
        for (int64_t j = 0; j < count; ++j) d_x[first + j] = from_float<T>(sum[j]);
      }
    }
  }
}

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
  table.max_pool = max_pool<T>;
  table.max_pool_backward = max_pool_backward<T>;
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
