// Defines the arithmetic on single numbers that kernels of CPUs and of GPUs share. Everything is in
// a namespace LOCKSTEP_ISA, the instruction set's on CPUs (kernels/isa_math.h says why) and
// gpu_rows for GPUs (gpu/row_math.h). CUDA's compiler makes each function for both sides.
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"

#ifdef __CUDACC__
#define LOCKSTEP_ANYWHERE __host__ __device__
#else
#define LOCKSTEP_ANYWHERE
#endif

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {

LOCKSTEP_ANYWHERE inline float to_float(float x) { return x; }
LOCKSTEP_ANYWHERE inline float to_float(Bf16 x) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(x.bits) << 16);
}

// Rounds to nearest, ties to even; a NaN stays a NaN (quiet), infinities stay,
// overflow becomes infinity.
LOCKSTEP_ANYWHERE inline Bf16 to_bf16(float x) {
  uint32_t bits = __builtin_bit_cast(uint32_t, x);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  uint32_t nan = (bits >> 16) | 0x40u;
  return Bf16{static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded)};
}

// Both conversions of fp16 choose between results instead of branching, so that loops vectorise;
// the compiler converts its own _Float16 one number at a time. After F. Giesen's notes on half
// floats (2012).
LOCKSTEP_ANYWHERE inline float to_float(Fp16 x) {
  const uint32_t magnitude = static_cast<uint32_t>(x.bits & 0x7fffu) << 13;
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000u) << 16;
  const uint32_t special = magnitude >= 0x0f800000u ? 0x38000000u : 0u;  // infinity, NaN
  const uint32_t normal = magnitude + 0x38000000u + special;             // exponent + 112
  // Below 2^-14 the bits count units of 2^-24: they are put under the exponent of 2^-14, then 2^-14
  // is subtracted.
  const float small = __builtin_bit_cast(float, magnitude + 0x38800000u) - 6.103515625e-05f;
  const uint32_t bits = magnitude < 0x00800000u ? __builtin_bit_cast(uint32_t, small) : normal;
  return __builtin_bit_cast(float, bits | sign);
}

// Rounds to nearest, ties to even; 65520 and above become infinity, a NaN stays a NaN.
LOCKSTEP_ANYWHERE inline Fp16 to_fp16(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Adding 0.5 leaves the number of units of 2^-24, rounded, in the low bits.
  const uint32_t small =
      __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t large = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  uint32_t rounded = magnitude < 0x38800000u ? small : normal;
  rounded = magnitude >= 0x47800000u ? large : rounded;
  return Fp16{static_cast<uint16_t>(rounded | ((bits >> 16) & 0x8000u))};
}

template <class T>
LOCKSTEP_ANYWHERE inline T from_float(float x);
template <>
LOCKSTEP_ANYWHERE inline float from_float<float>(float x) {
  return x;
}
template <>
LOCKSTEP_ANYWHERE inline Bf16 from_float<Bf16>(float x) {
  return to_bf16(x);
}
template <>
LOCKSTEP_ANYWHERE inline Fp16 from_float<Fp16>(float x) {
  return to_fp16(x);
}

// Returns e^x for x in [-87.3, 88.3]; x is clamped to that range. x = n ln 2 + r, |r| <= ln 2 / 2,
// and e^r is a minimax polynomial (relative error 3e-9). With the rounding of fp32 the relative
// error is below 2e-7 over the whole range (tested against the exp of double).
LOCKSTEP_ANYWHERE inline float exponential(float x) {
  x = x < -87.3f ? -87.3f : x;
  x = x > 88.3f ? 88.3f : x;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  float shifted = x * 1.44269504f + kRound;
  float n = shifted - kRound;
  float r = x - n * 0.693145752f;  // ln 2 is split in two: n times the first part is exact
  r = r - n * 1.42860677e-6f;
  float p = 0.001381459878757596f;
  p = p * r + 0.008368716575205326f;
  p = p * r + 0.04166838899254799f;
  p = p * r + 0.1666652113199234f;
  p = p * r + 0.4999999403953552f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  uint32_t exponent = __builtin_bit_cast(uint32_t, shifted) + 127u;  // low bits hold n + 127
  return p * __builtin_bit_cast(float, exponent << 23);
}

// Returns the 64 random bits of a row for nn/dropout.h, by SplitMix64 (Steele, Lea, Flood 2014).
LOCKSTEP_ANYWHERE inline uint64_t row_bits(uint64_t key, int64_t row) {
  uint64_t x = static_cast<uint64_t>(row) * 0x9e3779b97f4a7c15u + key;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Returns those of one of a row's parts, such as a head: of row * parts + part, modulo 2^64, for
// rows may be any number.
LOCKSTEP_ANYWHERE inline uint64_t row_bits(uint64_t key, int64_t row, int64_t parts, int64_t part) {
  const auto first = static_cast<uint64_t>(row) * static_cast<uint64_t>(parts);
  return row_bits(key, static_cast<int64_t>(first + static_cast<uint64_t>(part)));
}

// Mixes a number with the upper half of a row's bits, for nn/dropout.h.
LOCKSTEP_ANYWHERE inline uint32_t mixed_word(uint32_t h, uint32_t high) {
  h = ((h ^ (h >> 16)) * 0x7feb352du) ^ high;
  h = (h ^ (h >> 15)) * 0x846ca68bu;
  return h ^ (h >> 16);
}

// Returns the random halves of the columns 2 * pair (low) and 2 * pair + 1 (high) of that row.
LOCKSTEP_ANYWHERE inline uint32_t random_word(uint64_t row, int64_t pair) {
  return mixed_word(static_cast<uint32_t>(row) + static_cast<uint32_t>(pair),
                    static_cast<uint32_t>(row >> 32));
}

// Smooth activations with their slopes: the exact GELU (Hendrycks and Gimpel 2016), x * Phi(x),
// where Phi is the distribution function of the standard normal distribution, and the SiLU, x / (1
// + e^-x) (the same paper; Swish of Ramachandran et al. 2017 with beta = 1).
struct Activation {
  float value, slope;
};

// Phi(-|x|) = e^(-x^2 / 2) * t * P(t), t = 1 / (1 + 0.3 |x|), where P minimises the largest
// relative error on [0, 13.3] (1.3e-7): the form of Abramowitz and Stegun 7.1.26 with three more
// coefficients. In fp32 Phi is off by less than 2e-7. The density phi in the slope,
// Phi(x) + x * phi(x), uses the same e^(-x^2 / 2).
LOCKSTEP_ANYWHERE inline Activation gelu(float x) {
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

LOCKSTEP_ANYWHERE inline Activation silu(float x) {
  const float power = exponential(-x);
  const float share = 1.0f / (1.0f + power);
  const float rest = power * share;  // 1 - share, without the digits that the difference loses
  return {x * share, share * (1.0f + x * rest)};
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
