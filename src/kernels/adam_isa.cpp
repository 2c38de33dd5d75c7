// One step of Adam over a flat range, and the sum of squares that clipping needs.
#include "kernels/isa_math.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

template <bool kLow, bool kAverage>
void adam_range(const AdamArgs& a, int64_t begin, int64_t end) {
  float* __restrict value = a.value;
  float* __restrict gradient = a.gradient;
  float* __restrict m = a.m;
  float* __restrict v = a.v;
  Bf16* __restrict low = a.low;
  float* __restrict average = a.average;
  const AdamArgs c = a;  // by value: the stores below cannot change it
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const float g = gradient[i] * c.gradient_scale + c.l2_decay * value[i];
    const float new_m = m[i] + c.rate1 * (g - m[i]);
    const float new_v = c.beta2 * v[i] + c.rate2 * (g * g);
    const float denominator = __builtin_sqrtf(new_v) * c.second_scale + c.epsilon;
    const float w = value[i] * c.shrink - c.step_size * (new_m / denominator);
    m[i] = new_m;
    v[i] = new_v;
    value[i] = w;
    gradient[i] = 0;
    if constexpr (kLow) low[i] = to_bf16(w);
    if constexpr (kAverage) average[i] += c.average_rate * (w - average[i]);
  }
}

void adam(const AdamArgs& a, int64_t begin, int64_t end) {
  if (a.low != nullptr) {
    a.average != nullptr ? adam_range<true, true>(a, begin, end)
                         : adam_range<true, false>(a, begin, end);
  } else {
    a.average != nullptr ? adam_range<false, true>(a, begin, end)
                         : adam_range<false, false>(a, begin, end);
  }
}

double sum_of_squares(const float* x, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

}  // namespace

void fill_adam(Kernels& table) {
  table.adam = adam;
  table.sum_of_squares = sum_of_squares;
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
