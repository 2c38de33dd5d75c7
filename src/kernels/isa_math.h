// Defines the arithmetic that the *_isa.cpp files share. Everything is in the namespace of the
// instruction set, and nothing of the standard library is called: the linker must never keep an
// inline function compiled for AVX-512 as the one copy that a CPU without AVX-512 runs too.
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {

inline float to_float(float x) { return x; }
inline float to_float(Bf16 x) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(x.bits) << 16);
}

// Rounds to nearest, ties to even; a NaN stays a NaN (quiet), infinities stay,
// overflow becomes infinity.
inline Bf16 to_bf16(float x) {
  uint32_t bits = __builtin_bit_cast(uint32_t, x);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  uint32_t nan = (bits >> 16) | 0x40u;
  return Bf16{static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded)};
}

// Both conversions of fp16 choose between results instead of branching, so that loops vectorise;
// the compiler converts its own _Float16 one number at a time. After F. Giesen's notes on half
// floats (2012).
inline float to_float(Fp16 x) {
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
inline Fp16 to_fp16(float x) {
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
inline T from_float(float x);
template <>
inline float from_float<float>(float x) {
  return x;
}
template <>
inline Bf16 from_float<Bf16>(float x) {
  return to_bf16(x);
}
template <>
inline Fp16 from_float<Fp16>(float x) {
  return to_fp16(x);
}

// Returns e^x for x in [-87.3, 88.3]; x is clamped to that range. x = n ln 2 + r, |r| <= ln 2 / 2,
// and e^r is a minimax polynomial (relative error 3e-9). With the rounding of fp32 the relative
// error is below 2e-7 over the whole range (tested against the exp of double).
inline float exponential(float x) {
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
inline uint64_t row_bits(uint64_t key, int64_t row) {
  uint64_t x = static_cast<uint64_t>(row) * 0x9e3779b97f4a7c15u + key;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Random halves for the columns [2 * pair, 2 * pair + 2 * kBlockPairs) of a row; fill() makes those
// of the first `columns` of them. Entry j belongs to column 2 * pair + j.
constexpr int64_t kBlockPairs = 64;
constexpr int64_t kBlockColumns = 2 * kBlockPairs;
typedef uint16_t __attribute__((may_alias)) Half;
struct RandomHalves {
  alignas(64) uint32_t words[kBlockPairs];

  void fill(uint64_t row, int64_t pair, int64_t columns) {
    const uint32_t low = static_cast<uint32_t>(row) + static_cast<uint32_t>(pair);
    const uint32_t high = static_cast<uint32_t>(row >> 32);
    // The loop runs over whole vectors: the numbers past `columns` are made, but never read.
    const uint32_t count = (static_cast<uint32_t>(columns + 1) / 2 + 15u) / 16u * 16u;
#pragma omp simd
    for (uint32_t j = 0; j < count; ++j) {
      uint32_t h = low + j;
      h = ((h ^ (h >> 16)) * 0x7feb352du) ^ high;
      h = (h ^ (h >> 15)) * 0x846ca68bu;
      words[j] = h ^ (h >> 16);
    }
  }
  // The low half of a pair is the even column: every machine this runs on is little-endian.
  const Half* halves() const { return reinterpret_cast<const Half*>(words); }
};

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
