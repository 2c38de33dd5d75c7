// The transformations of winograd.h, a vector of channels at a time. With the points 0, 1, -1, 2,
// -2 and infinity: B^T of the patches is the same for both filterings, G and A^T are Vandermonde's.
#include "kernels/winograd.h"

#include "kernels/isa_math.h"
#include "kernels/small_product_isa.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

constexpr int64_t kSquare = kWinogradSquare, kPatch = 6, kPanel = 64;

typedef uint16_t HalfVector __attribute__((vector_size(kLanes * 2), aligned(2), may_alias));
typedef uint32_t Words __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

inline Lanes load(const float* from) { return *reinterpret_cast<const Lanes*>(from); }
inline Lanes load(const Bf16* from) {
  const HalfVector half = *reinterpret_cast<const HalfVector*>(from);
  return (Lanes)(__builtin_convertvector(half, Words) << 16);
}
inline void store(Lanes x, float* to) { *reinterpret_cast<Lanes*>(to) = x; }
// As to_bf16(). Returns what was stored.
inline Lanes store_rounded(Lanes x, Bf16* to) {
  const Words bits = (Words)x;
  const Words nearest = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const Words is_nan = (Words)(x != x);
  const Words rounded = (is_nan & ((bits >> 16) | 0x40u)) | (~is_nan & nearest);
  *reinterpret_cast<HalfVector*>(to) = __builtin_convertvector(rounded, HalfVector);
  return (Lanes)(rounded << 16);
}
inline Lanes store_rounded(Lanes x, float* to) {
  store(x, to);
  return x;
}

// Each of these multiplies by one matrix: to[i * step] = sum over j of matrix[i, j] * from[j].
struct Patch {  // B^T
  static constexpr int kFrom = 6, kTo = 6;
  static void multiply(const Lanes* x, Lanes* to, int step) {
    const Lanes even = x[4] - 4 * x[2], odd = x[3] - 4 * x[1];
    const Lanes even2 = x[4] - x[2], odd2 = 2 * (x[3] - x[1]);
    to[0] = 4 * x[0] - 5 * x[2] + x[4];
    to[step] = even + odd;
    to[2 * step] = even - odd;
    to[3 * step] = even2 + odd2;
    to[4 * step] = even2 - odd2;
    to[5 * step] = 4 * x[1] - 5 * x[3] + x[5];
  }
};
struct Weight {  // G of 3 taps
  static constexpr int kFrom = 3, kTo = 6;
  static void multiply(const Lanes* x, Lanes* to, int step) {
    const Lanes one = (x[0] + x[2]) * (-1.0f / 6);
    const Lanes two = (x[0] + 4 * x[2]) * (1.0f / 24), odd = x[1] * (1.0f / 6);
    to[0] = x[0] * 0.25f;
    to[step] = one - odd;
    to[2 * step] = one + odd;
    to[3 * step] = two + 0.5f * odd;
    to[4 * step] = two - 0.5f * odd;
    to[5 * step] = x[2];
  }
};
struct Square {  // G of 4 pixels
  static constexpr int kFrom = 4, kTo = 6;
  static void multiply(const Lanes* x, Lanes* to, int step) {
    const Lanes one = (x[0] + x[2]) * (-1.0f / 6), odd = (x[1] + x[3]) * (1.0f / 6);
    const Lanes two = (x[0] + 4 * x[2]) * (1.0f / 24), odd2 = (x[1] + 4 * x[3]) * (1.0f / 12);
    to[0] = x[0] * 0.25f;
    to[step] = one - odd;
    to[2 * step] = one + odd;
    to[3 * step] = two + odd2;
    to[4 * step] = two - odd2;
    to[5 * step] = x[3];
  }
};
struct Result {  // A^T, to 4 pixels
  static constexpr int kFrom = 6, kTo = 4;
  static void multiply(const Lanes* x, Lanes* to, int step) {
    const Lanes even = x[1] + x[2], odd = x[1] - x[2];
    const Lanes even2 = x[3] + x[4], odd2 = x[3] - x[4];
    to[0] = x[0] + even + even2;
    to[step] = odd + 2 * odd2;
    to[2 * step] = even + 4 * even2;
    to[3 * step] = odd + 8 * odd2 + x[5];
  }
};
struct Taps {  // A^T, to 3 taps
  static constexpr int kFrom = 6, kTo = 3;
  static void multiply(const Lanes* x, Lanes* to, int step) {
    const Lanes even = x[1] + x[2], odd = x[1] - x[2];
    const Lanes even2 = x[3] + x[4], odd2 = x[3] - x[4];
    to[0] = x[0] + even + even2;
    to[step] = odd + 2 * odd2;
    to[2 * step] = even + 4 * even2 + x[5];
  }
};

// matrix * from * matrix^T; from [kFrom, kFrom] and to [kTo, kTo], row by row.
template <class Matrix>
inline void multiply_both(const Lanes* from, Lanes* to) {
  Lanes half[Matrix::kFrom * Matrix::kTo];  // [kTo, kFrom], column by column
#pragma GCC unroll 6
  for (int row = 0; row < Matrix::kFrom; ++row) {
    Matrix::multiply(from + row * Matrix::kFrom, half + row, Matrix::kFrom);
  }
  // half[j, row] = sum over k of matrix[j, k] * from[row, k]
#pragma GCC unroll 6
  for (int j = 0; j < Matrix::kTo; ++j) {
    Matrix::multiply(half + j * Matrix::kFrom, to + j, Matrix::kTo);
  }
}

struct Place {                  // of a square
  int64_t image, line, column;  // pixels of its upper left corner
};
inline Place place_of(const WinogradImages& shape, int64_t square) {
  const int64_t columns = shape.columns(), lines = shape.lines();
  return {square / (lines * columns), square / columns % lines * kSquare,
          square % columns * kSquare};
}

// Transforms kSide x kSide pixels, from `border` pixels before the square on.
template <class T, class Matrix, int kBorder>
void transform(const WinogradSquaresArgs<T>& a, int64_t begin, int64_t end) {
  constexpr int kSide = Matrix::kFrom;
  const WinogradImages& s = a.shape;
  for (int64_t square = begin; square < end; ++square) {
    const Place place = place_of(s, square);
    const T* pixel[kSide * kSide];
    for (int64_t i = 0; i < kSide * kSide; ++i) {
      const int64_t line = place.line - kBorder + i / kSide;
      const int64_t column = place.column - kBorder + i % kSide;
      const bool inside = line >= 0 && line < s.height && column >= 0 && column < s.width;
      pixel[i] = inside ? a.x + ((place.image * s.height + line) * s.width + column) * s.channels
                        : a.zeros;
    }
    for (int64_t c = a.channel_begin; c < a.channel_end; c += kLanes) {
      Lanes from[kSide * kSide], to[kWinogradPlaces];
#pragma GCC unroll 36
      for (int i = 0; i < kSide * kSide; ++i) from[i] = load(pixel[i] + c);
      multiply_both<Matrix>(from, to);
      const int64_t own = c - a.channel_begin;
      float* out = a.out + own / kPanel * a.strides.panel + (square - begin) * a.strides.square +
                   own % kPanel;
#pragma GCC unroll 36
      for (int i = 0; i < kWinogradPlaces; ++i) store(to[i], out + i * a.strides.place);
    }
  }
}

template <class T>
void patches(const WinogradSquaresArgs<T>& a, int64_t begin, int64_t end) {
  transform<T, Patch, 1>(a, begin, end);
}
template <class T>
void squares(const WinogradSquaresArgs<T>& a, int64_t begin, int64_t end) {
  transform<T, Square, 0>(a, begin, end);
}

template <class T>
void weight(const WinogradWeightArgs<T>& a, int64_t begin, int64_t end) {
  const int64_t inputs = a.backward ? a.rows : a.columns;
  const int64_t by_output = a.backward ? 9 : a.columns * 9;
  const int64_t by_input = a.backward ? a.columns * 9 : 9;
  for (int64_t panel = begin; panel < end; ++panel) {
    float* packed = a.packed + panel * kWinogradPlaces * inputs * kPanel;
    for (int64_t o = 0; o < kPanel; o += kLanes) {
      for (int64_t i = 0; i < inputs; ++i) {
        const T* from = a.weight + (panel * kPanel + o) * by_output + i * by_input;
        alignas(64) float tap[9][kLanes];
        for (int64_t lane = 0; lane < kLanes; ++lane) {
#pragma GCC unroll 9
          for (int t = 0; t < 9; ++t) {
            tap[a.backward ? 8 - t : t][lane] = to_float(from[lane * by_output + t]);
          }
        }
        Lanes taps[9], to[kWinogradPlaces];
#pragma GCC unroll 9
        for (int t = 0; t < 9; ++t) taps[t] = load(tap[t]);
        multiply_both<Weight>(taps, to);
#pragma GCC unroll 36
        for (int p = 0; p < kWinogradPlaces; ++p) {
          store(to[p], packed + (p * inputs + i) * kPanel + o);
        }
      }
    }
  }
}

enum class ResultUse { kStore, kMeasure, kAdd };

template <class T, ResultUse kUse>
void result_as(const WinogradResultArgs<T>& a, int64_t begin, int64_t end) {
  const WinogradImages& s = a.shape;
  for (int64_t c = 0; c < kPanel; c += kLanes) {
    Lanes first{}, sum{}, sums_of_squares{};
    bool started = false;
    for (int64_t square = begin; square < end; ++square) {
      const float* products = a.products + (square - begin) * a.strides.square + c;
      Lanes from[kWinogradPlaces], to[kSquare * kSquare];
#pragma GCC unroll 36
      for (int i = 0; i < kWinogradPlaces; ++i) from[i] = load(products + i * a.strides.place);
      multiply_both<Result>(from, to);
      const Place place = place_of(s, square);
      const int64_t lines = smaller(kSquare, s.height - place.line);
      const int64_t columns = smaller(kSquare, s.width - place.column);
      T* y = a.y + ((place.image * s.height + place.line) * s.width + place.column) * s.channels +
             a.first_channel + c;
      for (int64_t line = 0; line < lines; ++line) {
        for (int64_t column = 0; column < columns; ++column) {
          T* at = y + (line * s.width + column) * s.channels;
          Lanes value = to[line * kSquare + column];
          if (kUse == ResultUse::kAdd) value += load(at);
          value = store_rounded(value, at);
          if (kUse != ResultUse::kMeasure) continue;
          if (!started) first = value;
          started = true;
          const Lanes distance = value - first;
          sum += distance;
          sums_of_squares += distance * distance;
        }
      }
    }
    if (kUse != ResultUse::kMeasure) continue;
    store(first, a.first + c);
    store(sum, a.sum + c);
    store(sums_of_squares, a.squares + c);
  }
}

template <class T>
void result(const WinogradResultArgs<T>& a, int64_t begin, int64_t end) {
  if (a.adds) return result_as<T, ResultUse::kAdd>(a, begin, end);
  a.sum != nullptr ? result_as<T, ResultUse::kMeasure>(a, begin, end)
                   : result_as<T, ResultUse::kStore>(a, begin, end);
}

// The outputs [begin, end).
void add_gradient(const WinogradGradientArgs& a, int64_t begin, int64_t end) {
  const int64_t step = a.outputs * a.inputs;
  for (int64_t o = begin; o < end; ++o) {
    for (int64_t i = 0; i < a.inputs; i += kLanes) {
      const float* products = a.products + o * a.inputs + i;
      Lanes from[kWinogradPlaces], to[9];
#pragma GCC unroll 36
      for (int p = 0; p < kWinogradPlaces; ++p) from[p] = load(products + p * step);
      multiply_both<Taps>(from, to);
      alignas(64) float tap[9][kLanes];
#pragma GCC unroll 9
      for (int t = 0; t < 9; ++t) store(to[t], tap[t]);
      float* gradient = a.gradient + (o * a.inputs + i) * 9;
      for (int64_t lane = 0; lane < kLanes; ++lane) {
#pragma GCC unroll 9
        for (int t = 0; t < 9; ++t) gradient[lane * 9 + t] += tap[t][lane];
      }
    }
  }
}

template <class T>
WinogradKernels<T> typed() {
  return {patches<T>, squares<T>, result<T>, weight<T>};
}

}  // namespace

void fill_winograd(Kernels& table) {
  table.winograd_fp32 = typed<float>();
  table.winograd_bf16 = typed<Bf16>();
  table.add_winograd_gradient = add_gradient;
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
