// Computes dropout with residual or ReLU, bias, sums over columns, and conversions
// between fp32 and bfloat16.
#include "kernels/isa_math.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

// Calls body(column, count, halves) for each block of columns of row r of a dropout.
template <class Body>
inline void for_blocks(const DropoutRows& dropout, int64_t r, int64_t width, const Body& body) {
  RandomHalves random;
  const uint64_t row = row_bits(dropout.key, dropout.rows[r]);
  for (int64_t column = 0; column < width; column += kBlockColumns) {
    const int64_t count = smaller(kBlockColumns, width - column);
    random.fill(row, column / 2, count);
    body(column, count, random.halves());
  }
}

template <class T, bool kBiased>
void add_dropout_as(const AddDropoutArgs<T>& a, int64_t begin, int64_t end) {
  const uint32_t threshold = a.dropout.threshold;
  for (int64_t r = begin; r < end; ++r) {
    const float row_scale = a.row_scale == nullptr ? 1.0f : a.row_scale[r];
    const float scale = a.dropout.scale * row_scale;
    const float* residual = a.residual + r * a.width;
    const T* x = a.x + r * a.width;
    const T* bias = a.bias;
    float* out = a.out + r * a.width;
    if (threshold == 0) {
#pragma omp simd
      for (int64_t j = 0; j < a.width; ++j) {
        const float v = to_float(x[j]) + (kBiased ? to_float(bias[j]) : 0.0f);
        out[j] = residual[j] + v * row_scale;
      }
      continue;
    }
    for_blocks(a.dropout, r, a.width, [=](int64_t column, int64_t count, const Half* half) {
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) {
        const float kept = half[j] >= threshold ? scale : 0.0f;
        const float v = to_float(x[column + j]) + (kBiased ? to_float(bias[column + j]) : 0.0f);
        out[column + j] = residual[column + j] + v * kept;
      }
    });
  }
}

template <class T>
void add_dropout(const AddDropoutArgs<T>& a, int64_t begin, int64_t end) {
  a.bias == nullptr ? add_dropout_as<T, false>(a, begin, end)
                    : add_dropout_as<T, true>(a, begin, end);
}

template <class T>
void add_dropout_backward(const AddDropoutBackwardArgs<T>& a, int64_t begin, int64_t end) {
  const uint32_t threshold = a.dropout.threshold;
  for (int64_t r = begin; r < end; ++r) {
    const float row_scale = a.row_scale == nullptr ? 1.0f : a.row_scale[r];
    const float scale = a.dropout.scale * row_scale;
    const float* d_out = a.d_out + r * a.width;
    T* d_x = a.d_x + r * a.width;
    if (threshold == 0) {
#pragma omp simd
      for (int64_t j = 0; j < a.width; ++j) d_x[j] = from_float<T>(d_out[j] * row_scale);
      continue;
    }
    for_blocks(a.dropout, r, a.width, [=](int64_t column, int64_t count, const Half* half) {
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) {
        const float kept = half[j] >= threshold ? scale : 0.0f;
        d_x[column + j] = from_float<T>(d_out[column + j] * kept);
      }
    });
  }
}

template <class T>
void relu_dropout(const ReluDropoutArgs<T>& a, int64_t begin, int64_t end) {
  const uint32_t threshold = a.dropout.threshold;
  const float scale = a.dropout.scale;
  for (int64_t r = begin; r < end; ++r) {
    T* __restrict x = a.x + r * a.width;
    const T* __restrict bias = a.bias;
    if (threshold == 0) {
#pragma omp simd
      for (int64_t j = 0; j < a.width; ++j) {
        const float v = to_float(x[j]) + to_float(bias[j]);
        x[j] = from_float<T>(v < 0 ? 0.0f : v);  // a NaN passes through
      }
      continue;
    }
    for_blocks(a.dropout, r, a.width, [=](int64_t column, int64_t count, const Half* half) {
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) {
        const float v = to_float(x[column + j]) + to_float(bias[column + j]);
        // A product instead of a choice, which g++ 12 compiles to a branch and does not vectorise.
        const float kept = static_cast<float>(half[j] >= threshold) * scale;
        x[column + j] = from_float<T>((v < 0 ? 0.0f : v) * kept);
      }
    });
  }
}

template <class T>
void relu_dropout_backward(const ReluDropoutBackwardArgs<T>& a, int64_t begin, int64_t end) {
  const T* d_y = a.d_y;
  const T* y = a.y;
  T* d_x = a.d_x;
  const float scale = a.scale;
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const float kept = to_float(y[i]) > 0 ? scale : 0.0f;
    d_x[i] = from_float<T>(to_float(d_y[i]) * kept);
  }
}

template <class T>
void add_bias(T* x, const T* bias, int64_t width, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    T* row = x + r * width;
#pragma omp simd
    for (int64_t j = 0; j < width; ++j)
      row[j] = from_float<T>(to_float(row[j]) + to_float(bias[j]));
  }
}

// Rows are read in order, many columns at once and four rows at a time: the processor's prefetching
// follows, and each sum is loaded and stored once in four rows.
template <class T>
void add_column_sums(const T* x, int64_t rows, int64_t width, float* sums, int64_t begin,
                     int64_t end) {
  constexpr int64_t kStrip = 1024;  // columns whose sums stay in the L1 cache
  for (int64_t first = begin; first < end; first += kStrip) {
    const int64_t count = smaller(kStrip, end - first);
    alignas(64) float sum[kStrip] = {};
    const T* row = x + first;
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4, row += 4 * width) {
      const T *second = row + width, *third = second + width, *fourth = third + width;
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) {
        sum[j] +=
            (to_float(row[j]) + to_float(second[j])) + (to_float(third[j]) + to_float(fourth[j]));
      }
    }
    for (; r < rows; ++r, row += width) {
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) sum[j] += to_float(row[j]);
    }
    for (int64_t j = 0; j < count; ++j) sums[first + j] += sum[j];
  }
}

void convert_to_bf16(const float* x, Bf16* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = to_bf16(x[i]);
}

void convert_to_float(const Bf16* x, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = to_float(x[i]);
}

void add_bf16(const Bf16* x, float* sum, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sum[i] += to_float(x[i]);
}

void exponentials(const float* x, float* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = exponential(x[i]);
}

template <class T>
void fill_typed(TypedKernels<T>& table) {
  table.add_dropout = add_dropout<T>;
  table.add_dropout_backward = add_dropout_backward<T>;
  table.relu_dropout = relu_dropout<T>;
  table.relu_dropout_backward = relu_dropout_backward<T>;
  table.add_bias = add_bias<T>;
  table.add_column_sums = add_column_sums<T>;
}

}  // namespace

void fill_elementwise(Kernels& table) {
  fill_typed(table.fp32);
  fill_typed(table.bf16);
  fill_typed(table.fp16);
  table.to_bf16 = convert_to_bf16;
  table.to_float = convert_to_float;
  table.add_bf16 = add_bf16;
  table.exponential = exponentials;
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
