// Takes an optimizer step over a flat range, and computes the sum of squares that
// gradient clipping needs.
#include "kernels/isa_math.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

struct None {};  // stands for no rounded copy of the weights

inline None* low_of(const UpdateArgs&, None) { return nullptr; }
inline Bf16* low_of(const UpdateArgs& u, Bf16) { return u.bf16; }
inline Fp16* low_of(const UpdateArgs& u, Fp16) { return u.fp16; }

inline void store(None*, int64_t, float) {}
template <class Low>
inline void store(Low* low, int64_t i, float w) {
  low[i] = from_float<Low>(w);
}

// step(i, gradient, value) returns the new value; it may change arrays of its own.
template <class Low, bool kAverage, class Step>
inline void update_range(const UpdateArgs& args, int64_t begin, int64_t end, const Step& step) {
  const UpdateArgs u = args;  // a copy, which the stores below cannot change
  float* __restrict value = u.value;
  float* __restrict gradient = u.gradient;
  float* __restrict average = u.average;
  Low* __restrict low = low_of(u, Low{});
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const float g = gradient[i] * u.gradient_scale + u.l2_decay * value[i];
    const float w = step(i, g, value[i]);
    value[i] = w;
    gradient[i] = 0;
    store(low, i, w);
    if constexpr (kAverage) average[i] += u.average_rate * (w - average[i]);
  }
}

template <class Step>
inline void update(const UpdateArgs& u, int64_t begin, int64_t end, const Step& step) {
  auto with_low = [&](auto low) {
    using Low = decltype(low);
    u.average != nullptr ? update_range<Low, true>(u, begin, end, step)
                         : update_range<Low, false>(u, begin, end, step);
  };
  if (u.bf16 != nullptr) return with_low(Bf16{});
  if (u.fp16 != nullptr) return with_low(Fp16{});
  with_low(None{});
}

void adam(const AdamArgs& args, int64_t begin, int64_t end) {
  const AdamArgs c = args;
  float* __restrict m = c.m;
  float* __restrict v = c.v;
  update(c.update, begin, end, [=](int64_t i, float g, float value) {
    const float new_m = m[i] + c.rate1 * (g - m[i]);
    const float new_v = c.beta2 * v[i] + c.rate2 * (g * g);
    const float denominator = __builtin_sqrtf(new_v) * c.second_scale + c.epsilon;
    m[i] = new_m;
    v[i] = new_v;
    return value * c.update.shrink - c.step_size * (new_m / denominator);
  });
}

void momentum(const MomentumArgs& args, int64_t begin, int64_t end) {
  const MomentumArgs c = args;
  float* __restrict m = c.m;
  if (m == nullptr) {
    update(c.update, begin, end,
           [=](int64_t, float g, float value) { return value * c.update.shrink - c.lr * g; });
    return;
  }
  update(c.update, begin, end, [=](int64_t i, float g, float value) {
    const float new_m = c.decay * m[i] + c.share * g;
    m[i] = new_m;
    return value * c.update.shrink - c.lr * (c.from_gradient * g + c.from_m * new_m);
  });
}

void move_average(const UpdateArgs& u, int64_t begin, int64_t end) {
  const float* value = u.value;
  float* average = u.average;
  const float rate = u.average_rate;
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) average[i] += rate * (value[i] - average[i]);
}

// A NaN is not zero.
bool all_zero(const float* x, int64_t n) {
  int64_t others = 0;
#pragma omp simd reduction(+ : others)
  for (int64_t i = 0; i < n; ++i) others += x[i] == 0 ? 0 : 1;
  return others == 0;
}

double sum_of_squares(const float* x, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

}  // namespace

void fill_update(Kernels& table) {
  table.adam = adam;
  table.momentum = momentum;
  table.move_average = move_average;
  table.all_zero = all_zero;
  table.sum_of_squares = sum_of_squares;
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
