// Rounds rows of fp32 to bf16 and interleaves them in pairs, as products of AVX-512 and AMX in bf16
// read their right factor: two rows become one of 32-bit words, the first in the lower halves.
#pragma once

#include <immintrin.h>

#include "kernels/isa_math.h"
#include "kernels/small_product_isa.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {

inline const uint16_t* words(const Bf16* x) { return reinterpret_cast<const uint16_t*>(x); }

// With a mask of all and operators, because GCC warns that the intrinsics without a mask read what
// was never written.
typedef uint32_t Pairs __attribute__((vector_size(64)));
inline __m512i pairs(__m256i even, __m256i odd) {
  const Pairs low = (Pairs)_mm512_maskz_cvtepu16_epi32(0xffff, even);
  const Pairs high = (Pairs)_mm512_maskz_cvtepu16_epi32(0xffff, odd);
  return (__m512i)(low | high << 16);
}
inline __m256i load_half(const uint16_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
inline __m256i rounded(const float* from) {
  return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_loadu_ps(from)));
}

inline void round_scores(const float* from, int64_t count, uint16_t* to) {
  for (int64_t j = 0; j < count; j += kPadding) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + j), rounded(from + j));
  }
}

inline void scale_scores(float* scores, int64_t count, float scale) {
#pragma omp simd
  for (int64_t j = 0; j < count; ++j) scores[j] *= scale;
}

// Stores fp32 [count, width], times scale, to rows of bf16.
inline void store_rows(const float* from, int64_t count, int64_t width, Bf16* to, int64_t stride,
                       float scale) {
  const __m512 factor = _mm512_set1_ps(scale);
  for (int64_t i = 0; i < count; ++i, from += width, to += stride) {
    for (int64_t j = 0; j < width; j += kPadding) {
      const __m512 x = _mm512_mul_ps(_mm512_loadu_ps(from + j), factor);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + j),
                          reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
    }
  }
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
