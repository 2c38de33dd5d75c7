// Computes smooth activations (kernels/scalar_math.h) with bias, dropout and their slopes.
#include "kernels/isa_math.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

// Works in blocks through fp32 buffers: when one loop mixes 16-bit numbers and fp32 arithmetic, GCC
// builds vectors that it has to take apart again.
template <class T, Activation (*kActivation)(float), bool kSlope>
void activate_as(const GeluDropoutArgs<T>& a, int64_t begin, int64_t end) {
  const uint32_t threshold = a.dropout.threshold;
  const float scale = a.dropout.scale;
  RandomHalves random;
  alignas(64) float value[kBlockColumns], slope[kBlockColumns];
  for (int64_t r = begin; r < end; ++r) {
    const uint64_t row = threshold == 0 ? 0 : row_bits(a.dropout.key, a.dropout.rows[r]);
    for (int64_t column = 0; column < a.width; column += kBlockColumns) {
      const int64_t count = smaller(kBlockColumns, a.width - column);
      T* x = a.x + r * a.width + column;
      T* y = a.y + r * a.width + column;
      const T* bias = a.bias + column;
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) value[j] = to_float(x[j]) + to_float(bias[j]);
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) {
        const Activation activation = kActivation(value[j]);
        value[j] = activation.value;
        slope[j] = activation.slope;
      }
      if (threshold != 0) {
        random.fill(row, column / 2, count);
        const Half* half = random.halves();
#pragma omp simd
        for (int64_t j = 0; j < count; ++j) {
          const float kept = static_cast<float>(half[j] >= threshold) * scale;
          value[j] *= kept;
          slope[j] *= kept;
        }
      }
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) y[j] = from_float<T>(value[j]);
      if (!kSlope) continue;
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) x[j] = from_float<T>(slope[j]);
    }
  }
}

template <class T, Activation (*kActivation)(float)>
void activate(const GeluDropoutArgs<T>& a, int64_t begin, int64_t end) {
  a.y == a.x ? activate_as<T, kActivation, false>(a, begin, end)
             : activate_as<T, kActivation, true>(a, begin, end);
}

template <class T>
void gelu_dropout_backward(const T* d_y, const T* slope, T* d_x, int64_t begin, int64_t end) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    d_x[i] = from_float<T>(to_float(d_y[i]) * to_float(slope[i]));
  }
}

template <class T>
void fill_typed(TypedKernels<T>& table) {
  table.gelu_dropout = activate<T, gelu>;
  table.silu_dropout = activate<T, silu>;
  table.gelu_dropout_backward = gelu_dropout_backward<T>;
}

}  // namespace

void fill_gelu(Kernels& table) {
  fill_typed(table.fp32);
  fill_typed(table.bf16);
  fill_typed(table.fp16);
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
