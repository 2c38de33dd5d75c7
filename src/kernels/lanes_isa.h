// Defines vectors of fp32 in registers, loaded from fp32, bf16 or fp16 and stored to fp32 or bf16.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernels/isa_math.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
// Operators work on all lanes (an extension of GCC and Clang).
typedef float Lanes __attribute__((vector_size(kLanes * 4)));
typedef uint32_t WordLanes __attribute__((vector_size(kLanes * 4)));
typedef uint16_t HalfLanes __attribute__((vector_size(kLanes * 2)));
// The same in memory, wherever it lies. For values there are other types, since g++ 14 for ARM
// fails on functions whose arguments need less alignment than their size.
typedef float StoredLanes __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef uint32_t StoredWords __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef uint16_t StoredHalves __attribute__((vector_size(kLanes * 2), aligned(2), may_alias));

// Zeros before each half. GCC 12 takes four instructions for what is one. Of the intrinsics for
// AVX-512 those without a mask read what was never written, as GCC warns.
inline WordLanes as_words(HalfLanes half) {
#if defined(__AVX512F__)
  return (WordLanes)_mm512_maskz_cvtepu16_epi32(0xffff, (__m256i)half);
#elif defined(__AVX2__)
  return (WordLanes)_mm256_cvtepu16_epi32((__m128i)half);
#else
  return __builtin_convertvector(half, WordLanes);
#endif
}
inline Lanes widened(HalfLanes half) { return (Lanes)(as_words(half) << 16); }
inline Lanes load_lanes(const float* from) { return *reinterpret_cast<const StoredLanes*>(from); }
inline Lanes load_lanes(const Bf16* from) {
  return widened(*reinterpret_cast<const StoredHalves*>(from));
}
inline Lanes load_lanes(const Fp16* from) {
  alignas(64) float lane[kLanes];
#pragma omp simd
  for (int i = 0; i < kLanes; ++i) lane[i] = to_float(from[i]);
  return *reinterpret_cast<const StoredLanes*>(lane);
}

#if defined(__AVX512BF16__)
// Rounds all lanes as to_bf16() does, except that numbers below 2^-126 become zero.
inline HalfLanes rounded(Lanes y) { return (HalfLanes)_mm512_cvtneps_pbh((__m512)y); }
#else
// Rounds all lanes as to_bf16() does.
inline HalfLanes rounded(Lanes y) {
  const WordLanes bits = (WordLanes)y;
  const WordLanes nan = (bits >> 16) | 0x40u;
  const WordLanes nearest = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const WordLanes is_nan = (WordLanes)(y != y);
  return __builtin_convertvector((is_nan & nan) | (~is_nan & nearest), HalfLanes);
}
#endif

// Both return the numbers as they were stored.
inline Lanes store_lanes(Lanes x, float* to) { return *reinterpret_cast<StoredLanes*>(to) = x; }
inline Lanes store_lanes(Lanes x, Bf16* to) {
  return widened(*reinterpret_cast<StoredHalves*>(to) = rounded(x));
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
