// What every rank computes for itself and must find to the same bits, whatever its processor: an
// optimizer's step over a flat range, the sum of squares that gradient clipping needs, the product
// of PowerSGD's factors. No multiplication is fused with an addition here (cmake/Layers.cmake),
// since not every processor can do that, and the order of sums is the same in every instruction
// set.
#include "kernels/lanes_isa.h"

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

// Some numbers in fp64, loaded by the instruction for it: GCC 12 splits the operator that converts.
#if defined(__AVX512F__)
constexpr int kDoubles = 8;
#elif defined(__AVX__)
constexpr int kDoubles = 4;
#else
constexpr int kDoubles = 2;
#endif
typedef double Doubles __attribute__((vector_size(8 * kDoubles)));
inline Doubles load_doubles(const float* x) {
#if defined(__AVX512F__)
  return (Doubles)_mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(x));
#elif defined(__AVX__)
  return (Doubles)_mm256_cvtps_pd(_mm_loadu_ps(x));
#else
  return Doubles{x[0], x[1]};
#endif
}

// In 32 sums, of which each has every 32nd element.
double sum_of_squares(const float* x, int64_t n) {
  constexpr int kSums = 32, kVectors = kSums / kDoubles;
  Doubles vectors[kVectors] = {};
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      const Doubles wide = load_doubles(x + i + kDoubles * v);
      vectors[v] += wide * wide;
    }
  }
  double sums[kSums];
  for (int s = 0; s < kSums; ++s) sums[s] = vectors[s / kDoubles][s % kDoubles];
  for (int s = 0; i < n; ++i, ++s) sums[s] += static_cast<double>(x[i]) * x[i];
  for (int half = kSums / 2; half > 0; half /= 2) {
    for (int s = 0; s < half; ++s) sums[s] += sums[s + half];
  }
  return sums[0];
}

void weighted_rows(const WeightedRowsArgs& a) {
  constexpr int kSums = 4;
  int64_t j = 0;
  for (; j + kSums * kLanes <= a.width; j += kSums * kLanes) {
    Lanes sums[kSums];
    for (int s = 0; s < kSums; ++s) sums[s] = a.weights[0] * load_lanes(a.rows + j + s * kLanes);
    for (int64_t row = 1; row < a.count; ++row) {
      const float* from = a.rows + row * a.width + j;
      for (int s = 0; s < kSums; ++s) sums[s] += a.weights[row] * load_lanes(from + s * kLanes);
    }
    for (int s = 0; s < kSums; ++s) store_lanes(sums[s], a.out + j + s * kLanes);
  }
  for (; j < a.width; ++j) {
    float sum = a.weights[0] * a.rows[j];
    for (int64_t row = 1; row < a.count; ++row) sum += a.weights[row] * a.rows[row * a.width + j];
    a.out[j] = sum;
  }
}

}  // namespace

void fill_update(Kernels& table) {
  table.adam = adam;
  table.momentum = momentum;
  table.move_average = move_average;
  table.all_zero = all_zero;
  table.sum_of_squares = sum_of_squares;
  table.weighted_rows = weighted_rows;
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
