// Computes smooth activations with their slopes: the exact GELU (Hendrycks and Gimpel 2016),
// x * Phi(x), where Phi is the distribution function of the standard normal distribution, and the
// SiLU, x / (1 + e^-x) (the same paper; Swish of Ramachandran et al. 2017 with beta = 1).
#include "kernels/isa_math.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

struct Activation {
  float value, slope;
};

// Phi(-|x|) = e^(-x^2 / 2) * t * P(t), t = 1 / (1 + 0.3 |x|), where P minimises the largest
// relative error on [0, 13.3] (1.3e-7): the form of Abramowitz and Stegun 7.1.26 with three more
// coefficients. In fp32 Phi is off by less than 2e-7. The density phi in the slope,
// Phi(x) + x * phi(x), uses the same e^(-x^2 / 2).
inline Activation gelu(float x) {
  const float size = __builtin_fabsf(x);
  const float t = 1.0f / (1.0f + 0.3f * size);
  const float power = exponential(-0.5f * x * x);
  float p = 0.036037124693393707f;
  p = p * t - 0.15871691703796387f;
  p = p * t + 0.2089700996875763f;
  p = p * t - 0.056100793182849884f;
  p = p * t + 0.1298459768295288f;
  p = p * t + 0.09952228516340256f;
  p = p * t + 0.12081702053546906f;
  p = p * t + 0.11962515860795975f;
  const float tail = power * t * p;
  const float phi = x < 0 ? tail : 1.0f - tail;
  return {x * phi, phi + x * power * 0.39894228f};
}

inline Activation silu(float x) {
  const float power = exponential(-x);
  const float share = 1.0f / (1.0f + power);
  const float rest = power * share;  // 1 - share, without the digits that the difference loses
  return {x * share, share * (1.0f + x * rest)};
}

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
