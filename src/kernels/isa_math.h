// Arithmetic that the *_isa.cpp files share. Everything lives in the namespace of the instruction
// set and nothing of the standard library is called: an inline function compiled for AVX-512 must
// never be the copy that the linker keeps for a CPU without it.
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

// To nearest, ties to even; a NaN stays a NaN (quiet), infinities stay, overflow becomes infinity.
inline Bf16 to_bf16(float x) {
  uint32_t bits = __builtin_bit_cast(uint32_t, x);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  uint32_t nan = (bits >> 16) | 0x40u;
  return Bf16{static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded)};
}

// Both directions choose between results instead of branching, so that loops vectorise; the
// compiler's own _Float16 is converted one number at a time. After F. Giesen's notes on half
// floats (2012).
inline float to_float(Fp16 x) {
  const uint32_t magnitude = static_cast<uint32_t>(x.bits & 0x7fffu) << 13;
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000u) << 16;
  const uint32_t special = magnitude >= 0x0f800000u ? 0x38000000u : 0u;  // infinity, NaN
  const uint32_t normal = magnitude + 0x38000000u + special;             // exponent + 112
  // Below 2^-14 the bits are a count of 2^-24: put under the exponent of 2^-14, less 2^-14.
  const float small = __builtin_bit_cast(float, magnitude + 0x38800000u) - 6.103515625e-05f;
  const uint32_t bits = magnitude < 0x00800000u ? __builtin_bit_cast(uint32_t, small) : normal;
  return __builtin_bit_cast(float, bits | sign);
}

// To nearest, ties to even; from 65520 on infinity, a NaN stays a NaN.
inline Fp16 to_fp16(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Adding 0.5 leaves a count of 2^-24 in the low bits, rounded.
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

// e^x for x in [-87.3, 88.3], clamped outside. x = n ln 2 + r, |r| <= ln 2 / 2, e^r by a polynomial
// fitted to the smallest largest relative error (3e-9). With the rounding of fp32 the relative
// error is below 2e-7 over the whole range (tested against the exp of double).
inline float exponential(float x) {
  x = x < -87.3f ? -87.3f : x;
  x = x > 88.3f ? 88.3f : x;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  float shifted = x * 1.44269504f + kRound;
  float n = shifted - kRound;
  float r = x - n * 0.693145752f;  // ln 2 in two parts: n times the first is exact
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

// The random numbers of nn/dropout.h. 64 bits for a row: SplitMix64 (Steele, Lea, Flood 2014).
inline uint64_t row_bits(uint64_t key, int64_t row) {
  uint64_t x = static_cast<uint64_t>(row) * 0x9e3779b97f4a7c15u + key;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Random halves for the columns [2 * pair, 2 * pair + 2 * kBlockPairs) of a row, of which the first
// `columns` are asked for: entry j belongs to column 2 * pair + j.
constexpr int64_t kBlockPairs = 64;
constexpr int64_t kBlockColumns = 2 * kBlockPairs;
typedef uint16_t __attribute__((may_alias)) Half;
struct RandomHalves {
  alignas(64) uint32_t words[kBlockPairs];

  void fill(uint64_t row, int64_t pair, int64_t columns) {
    const uint32_t low = static_cast<uint32_t>(row) + static_cast<uint32_t>(pair);
    const uint32_t high = static_cast<uint32_t>(row >> 32);
    // Whole vectors: the numbers behind `columns` are made, never read.
    const uint32_t count = (static_cast<uint32_t>(columns + 1) / 2 + 15u) / 16u * 16u;
#pragma omp simd
    for (uint32_t j = 0; j < count; ++j) {
      uint32_t h = low + j;
      h = ((h ^ (h >> 16)) * 0x7feb352du) ^ high;
      h = (h ^ (h >> 15)) * 0x846ca68bu;
      words[j] = h ^ (h >> 16);
    }
  }
  // Little-endian, as every machine this runs on: the low half of a pair is the even column.
  const Half* halves() const { return reinterpret_cast<const Half*>(words); }
};

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
