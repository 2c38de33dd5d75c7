// Resizes and normalises images. Resizing follows the description of Pillow's
// resampling: a separable filter in fixed point, rounded to 8 bits after each pass, so
// the result is the same to the bit.
#include "kernels/isa_math.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

constexpr int kFractionBits = 22;  // 32 less 8 for a pixel and 2 for sums beyond 255
constexpr int32_t kHalf = 1 << (kFractionBits - 1);
constexpr int64_t kLanes = 16;

// The compiler splits these vectors into as many registers as the instruction set needs.
typedef int32_t Ints __attribute__((vector_size(64)));
typedef uint16_t Shorts __attribute__((vector_size(32)));
typedef uint8_t Bytes __attribute__((vector_size(16)));

// Vectors are passed by reference, because how they are passed by value depends on the instruction
// set. Widening is in two steps: GCC 12 widens fourfold one number at a time.
inline void add_product(Ints& sum, const uint8_t* p, int32_t weight) {
  Bytes bytes;
  __builtin_memcpy(&bytes, p, sizeof bytes);
  sum += __builtin_convertvector(__builtin_convertvector(bytes, Shorts), Ints) * weight;
}

inline void store_rounded(const Ints& sum, uint8_t* to) {
  Ints value = sum >> kFractionBits;
  value = value < 0 ? Ints{} : value;
  value = value > 255 ? Ints{} + 255 : value;
  const Bytes bytes = __builtin_convertvector(value, Bytes);
  __builtin_memcpy(to, &bytes, sizeof bytes);
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
    Ints low = Ints{} + kHalf, high = low;
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
      Ints low = Ints{} + kHalf, high = low;
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
