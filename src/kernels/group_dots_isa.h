// How packed products (packed_product.h) multiply one group of 4 bytes of a row, broadcast, by one
// group of every output of a vector, in each number format and instruction set.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "kernels/isa_math.h"
#include "kernels/small_product_isa.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {

typedef int32_t IntLanes __attribute__((vector_size(kLanes * 4)));
typedef int32_t StoredInts __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef uint32_t Group __attribute__((may_alias));

// These structs say how one group of inputs multiplies one group of weights. Weights and Input are
// what is loaded or broadcast once and used by several sums.
struct Fp32Dot {
  using Sum = Lanes;
  using Weights = Lanes;
  using Input = Lanes;
  static Weights weights(const Group* w) { return *reinterpret_cast<const StoredLanes*>(w); }
  static Input input(Group x) {
    return __builtin_bit_cast(float, static_cast<uint32_t>(x)) - Lanes{};
  }
  static void add(Sum& sum, const Input& x, const Weights& w) { sum += x * w; }
};

#if defined(__AVX512BF16__)
struct Bf16Dot {
  using Sum = Lanes;
  using Weights = __m512bh;
  using Input = __m512bh;
  static Weights weights(const Group* w) { return (__m512bh)_mm512_loadu_si512(w); }
  static Input input(Group x) { return (__m512bh)_mm512_set1_epi32(static_cast<int>(x)); }
  static void add(Sum& sum, const Input& x, const Weights& w) {
    sum = (Lanes)_mm512_dpbf16_ps((__m512)sum, x, w);
  }
};
#else
struct Bf16Dot {  // both halves widened to fp32
  struct Pair {
    Lanes first, second;
  };
  using Sum = Lanes;
  using Weights = Pair;
  using Input = Pair;
  static Pair widen(IntLanes both) {
    return {(Lanes)(both << 16), (Lanes)(both & static_cast<int32_t>(0xffff0000u))};
  }
  static Weights weights(const Group* w) { return widen(*reinterpret_cast<const StoredInts*>(w)); }
  static Input input(Group x) { return widen(static_cast<int32_t>(x) - IntLanes{}); }
  static void add(Sum& sum, const Input& x, const Weights& w) {
    sum += x.first * w.first;
    sum += x.second * w.second;
  }
};
#endif

#if defined(__AVX512VNNI__)
struct Int8Dot {
  using Sum = IntLanes;
  using Weights = __m512i;
  using Input = __m512i;
  static Weights weights(const Group* w) { return _mm512_loadu_si512(w); }
  static Input input(Group x) { return _mm512_set1_epi32(static_cast<int>(x)); }
  static void add(Sum& sum, const Input& x, const Weights& w) {
    sum = (IntLanes)_mm512_dpbusd_epi32((__m512i)sum, x, w);
  }
};
#elif defined(__AVX2__)
// Bytes with even and with odd numbers become 16-bit integers, whose products are added in pairs to
// 32 bits exactly. (The instruction that multiplies bytes directly, vpmaddubsw, saturates.)
struct Int8Dot {
#if defined(__AVX512BW__)
  using Vector = __m512i;
  static Vector load(const Group* w) { return _mm512_loadu_si512(w); }
  static Vector spread(uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
  static Vector even(Vector w) { return _mm512_srai_epi16(_mm512_slli_epi16(w, 8), 8); }
  static Vector odd(Vector w) { return _mm512_srai_epi16(w, 8); }
  static Vector lower_bytes(Vector x) { return _mm512_and_si512(x, _mm512_set1_epi16(0x00ff)); }
  static Vector upper_bytes(Vector x) { return _mm512_srli_epi16(x, 8); }
  static Vector multiply(Vector x, Vector w) { return _mm512_madd_epi16(x, w); }
#else
  using Vector = __m256i;
  static Vector load(const Group* w) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w));
  }
  static Vector spread(uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
  static Vector even(Vector w) { return _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8); }
  static Vector odd(Vector w) { return _mm256_srai_epi16(w, 8); }
  static Vector lower_bytes(Vector x) { return _mm256_and_si256(x, _mm256_set1_epi16(0x00ff)); }
  static Vector upper_bytes(Vector x) { return _mm256_srli_epi16(x, 8); }
  static Vector multiply(Vector x, Vector w) { return _mm256_madd_epi16(x, w); }
#endif
  struct Pair {
    Vector even, odd;
  };
  using Sum = IntLanes;
  using Weights = Pair;
  using Input = Pair;
  static Weights weights(const Group* w) {
    const Vector all = load(w);
    return {even(all), odd(all)};
  }
  static Input input(Group x) {
    const Vector all = spread(x);
    return {lower_bytes(all), upper_bytes(all)};
  }
  static void add(Sum& sum, const Input& x, const Weights& w) {
    sum += (IntLanes)multiply(x.even, w.even);
    sum += (IntLanes)multiply(x.odd, w.odd);
  }
};
#elif defined(__ARM_FEATURE_DOTPROD)
// x - 128 is x with its highest bit changed, a signed byte; so the sums need no offset.
struct Int8Dot {
  using Sum = IntLanes;
  using Weights = int8x16_t;
  using Input = int8x16_t;
  static Weights weights(const Group* w) { return vld1q_s8(reinterpret_cast<const int8_t*>(w)); }
  static Input input(Group x) {
    return vreinterpretq_s8_u32(vdupq_n_u32(static_cast<uint32_t>(x) ^ 0x80808080u));
  }
  static void add(Sum& sum, const Input& x, const Weights& w) {
    sum = (IntLanes)vdotq_s32((int32x4_t)sum, x, w);
  }
};
#elif defined(__ARM_NEON) && defined(__aarch64__)
// Bytes with even and with odd numbers as 16-bit integers: two products of a group are added
// exactly in 32 bits.
struct Int8Dot {
  struct Pair {
    int16x8_t even, odd;
  };
  using Sum = IntLanes;
  using Weights = Pair;
  using Input = Pair;
  static Weights weights(const Group* w) {
    const int16x8_t all = vld1q_s16(reinterpret_cast<const int16_t*>(w));
    return {vshrq_n_s16(vshlq_n_s16(all, 8), 8), vshrq_n_s16(all, 8)};
  }
  static Input input(Group x) {
    const uint32_t bytes = x;
    return {vreinterpretq_s16_u32(vdupq_n_u32(bytes & 0x00ff00ffu)),
            vreinterpretq_s16_u32(vdupq_n_u32((bytes >> 8) & 0x00ff00ffu))};
  }
  // x w of the low and the high lanes are pairs of one group: neighbours are added.
  static int32x4_t multiply(int16x8_t x, int16x8_t w) {
    return vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(w)), vmull_high_s16(x, w));
  }
  static void add(Sum& sum, const Input& x, const Weights& w) {
    sum += (IntLanes)multiply(x.even, w.even);
    sum += (IntLanes)multiply(x.odd, w.odd);
  }
};
#else
struct Int8Dot {
  struct Four {
    IntLanes byte[4];
  };
  using Sum = IntLanes;
  using Weights = Four;
  using Input = uint32_t;
  static Weights weights(const Group* w) {
    const IntLanes all = *reinterpret_cast<const StoredInts*>(w);
    Four out;
    for (int i = 0; i < 4; ++i) out.byte[i] = (all << (24 - 8 * i)) >> 24;
    return out;
  }
  static Input input(Group x) { return x; }
  static void add(Sum& sum, const Input& x, const Weights& w) {
    for (int i = 0; i < 4; ++i) sum += static_cast<int32_t>((x >> (8 * i)) & 255u) * w.byte[i];
  }
};
#endif

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
