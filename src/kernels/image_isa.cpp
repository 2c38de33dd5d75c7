// Resizes and normalises images. Resizing follows the description of Pillow's
// resampling: a separable filter in fixed point, rounded to 8 bits after each pass, so
// the result is the same to the bit.
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernels/isa_math.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

constexpr int kFractionBits = 22;  // 32 less 8 for a pixel and 2 for sums beyond 255
constexpr int32_t kHalf = 1 << (kFractionBits - 1);
constexpr int64_t kLanes = 16;

typedef uint8_t Bytes __attribute__((vector_size(16)));
inline Bytes load_bytes(const uint8_t* p) {
  Bytes bytes;
  __builtin_memcpy(&bytes, p, sizeof bytes);
  return bytes;
}
inline void store_bytes(const Bytes& bytes, uint8_t* to) {
  __builtin_memcpy(to, &bytes, sizeof bytes);
}

// Sums for 16 bytes, in as many registers as the instruction set needs. GCC 12 splits longer
// vectors by itself, but widens and narrows them one number at a time then; with AVX-512 it takes
// seven instructions for what is one.
#if defined(__AVX512F__)
constexpr int kParts = 1;
#elif defined(__AVX2__)
constexpr int kParts = 2;
#else
constexpr int kParts = 4;
#endif
typedef int32_t Ints __attribute__((vector_size(64 / kParts)));
struct Sums {
  Ints part[kParts];

  void begin() {
    for (Ints& ints : part) ints = Ints{} + kHalf;
  }
};

// Vectors are passed by reference, because how they are passed by value depends on the instruction
// set.
inline void widen(const uint8_t* p, Sums& to) {
#if defined(__AVX512F__)
  to.part[0] = (Ints)_mm512_maskz_cvtepu8_epi32(0xffff, (__m128i)load_bytes(p));
#elif defined(__AVX2__)
  const __m128i bytes = (__m128i)load_bytes(p);
  to.part[0] = (Ints)_mm256_cvtepu8_epi32(bytes);
  to.part[1] = (Ints)_mm256_cvtepu8_epi32(_mm_unpackhi_epi64(bytes, bytes));
#else
  // Zeros between the bytes, and again, since every machine this runs on is little-endian.
  typedef uint16_t Shorts __attribute__((vector_size(16)));
  const Bytes low = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
  const Bytes high = {8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const Shorts low_words = {0, 8, 1, 9, 2, 10, 3, 11}, high_words = {4, 12, 5, 13, 6, 14, 7, 15};
  const Bytes bytes = load_bytes(p);
  const Shorts first = (Shorts)__builtin_shuffle(bytes, Bytes{}, low);
  const Shorts second = (Shorts)__builtin_shuffle(bytes, Bytes{}, high);
  to.part[0] = (Ints)__builtin_shuffle(first, Shorts{}, low_words);
  to.part[1] = (Ints)__builtin_shuffle(first, Shorts{}, high_words);
  to.part[2] = (Ints)__builtin_shuffle(second, Shorts{}, low_words);
  to.part[3] = (Ints)__builtin_shuffle(second, Shorts{}, high_words);
#endif
}

inline void add_product(Sums& sum, const uint8_t* p, int32_t weight) {
  Sums bytes;
  widen(p, bytes);
  for (int i = 0; i < kParts; ++i) sum.part[i] += bytes.part[i] * weight;
}

inline void store_rounded(const Sums& sum, uint8_t* to) {
  Ints value[kParts];
  for (int i = 0; i < kParts; ++i) {
    value[i] = sum.part[i] >> kFractionBits;
    value[i] = value[i] < 0 ? Ints{} : value[i];
    value[i] = value[i] > 255 ? Ints{} + 255 : value[i];
  }
#if defined(__AVX512F__)
  store_bytes(__builtin_convertvector(value[0], Bytes), to);
#elif defined(__AVX2__)
  const __m256i words = _mm256_packs_epi32((__m256i)value[0], (__m256i)value[1]);  // by halves
  const __m256i sorted = _mm256_permute4x64_epi64(words, 0xd8);
  store_bytes(
      (Bytes)_mm_packus_epi16(_mm256_castsi256_si128(sorted), _mm256_extracti128_si256(sorted, 1)),
      to);
#else
  const Bytes even = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};
  const Bytes first = __builtin_shuffle((Bytes)value[0], (Bytes)value[1], even);
  const Bytes second = __builtin_shuffle((Bytes)value[2], (Bytes)value[3], even);
  store_bytes(__builtin_shuffle(first, second, even), to);
#endif
}

inline uint8_t rounded(int32_t sum) {
  sum >>= kFractionBits;
  return static_cast<uint8_t>(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

// Interleaves [8 rows, width] pixels of 4 bytes to [width, 8 rows]: one pixel of all rows is two
// vectors. When there are fewer than 8 rows, the last one is repeated.
void interleave_rows(const ResizeRowsArgs& a, int64_t first, int64_t rows, uint8_t* to) {
  typedef uint32_t __attribute__((may_alias)) Pixel;
  typedef uint32_t Row __attribute__((vector_size(32), may_alias, aligned(4)));
  typedef uint32_t Whole __attribute__((vector_size(32)));
  const Pixel* from[kResizeBlockRows];
  for (int64_t r = 0; r < kResizeBlockRows; ++r) {
    const int64_t row = first + (r < rows ? r : rows - 1);
    from[r] = reinterpret_cast<const Pixel*>(a.in + row * a.in_stride);
  }
  Pixel* out = reinterpret_cast<Pixel*>(to);
  int64_t x = 0;
  for (; x + 8 <= a.in_width; x += 8) {  // a transpose of 8 x 8 words
    Whole v[8], w[8];
    for (int r = 0; r < 8; ++r) v[r] = *reinterpret_cast<const Row*>(from[r] + x);
    for (int r = 0; r < 4; ++r) {  // rows r and r + 4 of neighbouring quads
      w[r] = __builtin_shuffle(v[r], v[r + 4], Whole{0, 1, 2, 3, 8, 9, 10, 11});
      w[r + 4] = __builtin_shuffle(v[r], v[r + 4], Whole{4, 5, 6, 7, 12, 13, 14, 15});
    }
    for (int half = 0; half < 8; half += 4) {
      const Whole ab_low = __builtin_shuffle(w[half], w[half + 1], Whole{0, 8, 1, 9, 4, 12, 5, 13});
      const Whole ab_high =
          __builtin_shuffle(w[half], w[half + 1], Whole{2, 10, 3, 11, 6, 14, 7, 15});
      const Whole cd_low =
          __builtin_shuffle(w[half + 2], w[half + 3], Whole{0, 8, 1, 9, 4, 12, 5, 13});
      const Whole cd_high =
          __builtin_shuffle(w[half + 2], w[half + 3], Whole{2, 10, 3, 11, 6, 14, 7, 15});
      Row* line = reinterpret_cast<Row*>(out + (x + half) * 8);
      line[0] = __builtin_shuffle(ab_low, cd_low, Whole{0, 1, 8, 9, 4, 5, 12, 13});
      line[1] = __builtin_shuffle(ab_low, cd_low, Whole{2, 3, 10, 11, 6, 7, 14, 15});
      line[2] = __builtin_shuffle(ab_high, cd_high, Whole{0, 1, 8, 9, 4, 5, 12, 13});
      line[3] = __builtin_shuffle(ab_high, cd_high, Whole{2, 3, 10, 11, 6, 7, 14, 15});
    }
  }
  for (; x < a.in_width; ++x) {
    for (int64_t r = 0; r < kResizeBlockRows; ++r) out[x * 8 + r] = from[r][x];
  }
}

void resize_block(const ResizeRowsArgs& a, int64_t first, int64_t rows) {
  interleave_rows(a, first, rows, a.scratch);
  const ResizeAxisArgs& axis = a.axis;
  for (int64_t i = 0; i < axis.size; ++i) {
    const int64_t from = a.mirror ? axis.size - 1 - i : i;
    const uint8_t* p = a.scratch + static_cast<int64_t>(axis.begins[from]) * 2 * kLanes;
    const int32_t* weights = axis.weights + from * axis.taps;
    const int32_t count = axis.counts[from];
    Sums low, high;
    low.begin();
    high.begin();
    for (int32_t k = 0; k < count; ++k, p += 2 * kLanes) {
      add_product(low, p, weights[k]);
      add_product(high, p + kLanes, weights[k]);
    }
    uint8_t pixels[2 * kLanes];
    store_rounded(low, pixels);
    store_rounded(high, pixels + kLanes);
    // 4 bytes are written; the next pixel overwrites the last of them.
    uint8_t* out = a.out + first * a.out_stride + 3 * i;
    for (int64_t r = 0; r < rows; ++r) {
      __builtin_memcpy(out + r * a.out_stride, pixels + 4 * r, 4);
    }
  }
}

void resize_rows(const ResizeRowsArgs& a, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; row += kResizeBlockRows) {
    resize_block(a, row, smaller(kResizeBlockRows, end - row));
  }
}

void resize_columns(const ResizeColumnsArgs& a, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const uint8_t* first = a.in + static_cast<int64_t>(a.axis.begins[row]) * a.in_stride;
    const int32_t* weights = a.axis.weights + row * a.axis.taps;
    const int32_t count = a.axis.counts[row];
    uint8_t* out = a.out + row * a.out_stride;
    int64_t x = 0;
    for (; x + 2 * kLanes <= a.width_bytes; x += 2 * kLanes) {
      Sums low, high;
      low.begin();
      high.begin();
      const uint8_t* p = first + x;
      for (int32_t k = 0; k < count; ++k, p += a.in_stride) {
        add_product(low, p, weights[k]);
        add_product(high, p + kLanes, weights[k]);
      }
      store_rounded(low, out + x);
      store_rounded(high, out + x + kLanes);
    }
    for (; x < a.width_bytes; ++x) {
      int32_t sum = kHalf;
      for (int32_t k = 0; k < count; ++k) sum += first[k * a.in_stride + x] * weights[k];
      out[x] = rounded(sum);
    }
  }
}

template <class T>
void normalize(const NormalizeArgs<T>& a) {
  const uint8_t* x = a.x;
  const uint8_t* other = a.other;
  const float* scale = a.scale;
  const float* shift = a.shift;
  T* out = a.out;
  if (other == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < a.n; ++i) {
      out[i] = from_float<T>(static_cast<float>(x[i]) * scale[i] + shift[i]);
    }
    return;
  }
  const float weight = a.weight;
#pragma omp simd
  for (int64_t i = 0; i < a.n; ++i) {
    const float difference = static_cast<float>(x[i]) - static_cast<float>(other[i]);
    const float mixed = static_cast<float>(other[i]) + weight * difference;
    out[i] = from_float<T>(mixed * scale[i] + shift[i]);
  }
}

}  // namespace

void fill_image(Kernels& table) {
  table.image = {resize_rows, resize_columns, normalize<float>, normalize<Bf16>, normalize<Fp16>};
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
