// Implements the transformations of winograd.h, on one vector of channels at a time. B^T of the
// patches is the same for both filterings; G and A^T are Vandermonde matrices, G divided by the
// products of the distances.
#include "kernels/winograd.h"

#include "kernels/isa_math.h"
#include "kernels/lanes_isa.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

constexpr int64_t kSquare = kWinogradSquare, kPatch = 6, kPanel = 64;

// The points 0, a, -a, b, -b, infinity, and the products of the distances of 0, a and b from the
// other points.
constexpr float kA = 0.625f, kB = 1.5f;
constexpr float kA2 = kA * kA, kB2 = kB * kB;
constexpr float kFrom0 = kA2 * kB2, kFromA = 2 * kA2 * (kA2 - kB2), kFromB = 2 * kB2 * (kB2 - kA2);

// The values at 0, a and -a, b and -b, and infinity; a pair is kept as its parts
// of even and odd powers.
struct Pair {
  Lanes even, odd;
};
struct Points {
  Lanes zero;
  Pair a, b;
  Lanes infinity;

  void store(Lanes* to, int step) const {
    to[0] = zero;
    to[step] = a.even + a.odd;
    to[2 * step] = a.even - a.odd;
    to[3 * step] = b.even + b.odd;
    to[4 * step] = b.even - b.odd;
    to[5 * step] = infinity;
  }
};

// Each of these multiplies by one matrix: to[i * step] = sum over j of matrix[i, j] * from[j].
struct Patch {  // B^T
  static constexpr int kFrom = 6, kTo = 6;
  static void multiply(const Lanes* x, Lanes* to, int step) {
    const Pair a{x[4] - kB2 * x[2], kA * (x[3] - kB2 * x[1])};
    const Pair b{x[4] - kA2 * x[2], kB * (x[3] - kA2 * x[1])};
    const Lanes zero = kFrom0 * x[0] - (kA2 + kB2) * x[2] + x[4];
    const Lanes infinity = kFrom0 * x[1] - (kA2 + kB2) * x[3] + x[5];
    Points{zero, a, b, infinity}.store(to, step);
  }
};
struct Weight {  // G of 3 taps
  static constexpr int kFrom = 3, kTo = 6;
  static void multiply(const Lanes* x, Lanes* to, int step) {
    const Pair a{(x[0] + kA2 * x[2]) * (1 / kFromA), x[1] * (kA / kFromA)};
    const Pair b{(x[0] + kB2 * x[2]) * (1 / kFromB), x[1] * (kB / kFromB)};
    Points{x[0] * (1 / kFrom0), a, b, x[2]}.store(to, step);
  }
};
struct Square {  // G of 4 pixels
  static constexpr int kFrom = 4, kTo = 6;
  static void multiply(const Lanes* x, Lanes* to, int step) {
    const Pair a{(x[0] + kA2 * x[2]) * (1 / kFromA), (x[1] + kA2 * x[3]) * (kA / kFromA)};
    const Pair b{(x[0] + kB2 * x[2]) * (1 / kFromB), (x[1] + kB2 * x[3]) * (kB / kFromB)};
    Points{x[0] * (1 / kFrom0), a, b, x[3]}.store(to, step);
  }
};
struct Result {  // A^T, to 4 pixels
  static constexpr int kFrom = 6, kTo = 4;
  static void multiply(const Lanes* x, Lanes* to, int step) {
    const Lanes even = x[1] + x[2], odd = kA * (x[1] - x[2]);
    const Lanes even2 = x[3] + x[4], odd2 = kB * (x[3] - x[4]);
    to[0] = x[0] + even + even2;
    to[step] = odd + odd2;
    to[2 * step] = kA2 * even + kB2 * even2;
    to[3 * step] = kA2 * odd + kB2 * odd2 + x[5];
  }
};
struct Taps {  // A^T, to 3 taps
  static constexpr int kFrom = 6, kTo = 3;
  static void multiply(const Lanes* x, Lanes* to, int step) {
    const Lanes even = x[1] + x[2], odd = kA * (x[1] - x[2]);
    const Lanes even2 = x[3] + x[4], odd2 = kB * (x[3] - x[4]);
    to[0] = x[0] + even + even2;
    to[step] = odd + odd2;
    to[2 * step] = kA2 * even + kB2 * even2 + x[5];
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

// Finds the pixels of a square, from kBorder pixels before it on; outside the image they are zeros.
template <int kSide, int kBorder, class T>
inline void find_pixels(const WinogradSquaresArgs<T>& a, int64_t square, const T** pixel) {
  const WinogradImages& s = a.shape;
  const Place place = place_of(s, square);
  for (int64_t i = 0; i < kSide * kSide; ++i) {
    const int64_t line = place.line - kBorder + i / kSide;
    const int64_t column = place.column - kBorder + i % kSide;
    const bool inside = line >= 0 && line < s.height && column >= 0 && column < s.width;
    pixel[i] =
        inside ? a.x + ((place.image * s.height + line) * s.width + column) * s.channels : a.zeros;
  }
}

template <class Matrix, class T>
inline void transform_pixels(const T* const* pixel, int64_t channel, Lanes* to) {
  constexpr int kPixels = Matrix::kFrom * Matrix::kFrom;
  Lanes from[kPixels];
#pragma GCC unroll 36
  for (int i = 0; i < kPixels; ++i) from[i] = load_lanes(pixel[i] + channel);
  multiply_both<Matrix>(from, to);
}

// Numbers in a group of packed_product.h.
template <class T>
constexpr int kGroup = 4 / sizeof(T);

// Stores one number, or one group, for each lane.
template <class T>
inline void store_groups(const Lanes (&x)[1][kWinogradPlaces], int place, T* to) {
  store_lanes(x[0][place], to);
}
inline void store_groups(const Lanes (&x)[2][kWinogradPlaces], int place, Bf16* to) {
  const WordLanes low = as_words(rounded(x[0][place]));
  const WordLanes high = as_words(rounded(x[1][place]));
  *reinterpret_cast<StoredWords*>(to) = low | high << 16;
}

// kTogether squares form a group.
template <class T, class Matrix, int kBorder, int kTogether>
void transform(const WinogradSquaresArgs<T>& a, int64_t begin, int64_t end) {
  constexpr int kSide = Matrix::kFrom;
  for (int64_t first = begin; first < end; first += kTogether) {
    const T* pixel[kTogether][kSide * kSide];
    for (int g = 0; g < kTogether; ++g) {
      if (first + g < end) {
        find_pixels<kSide, kBorder>(a, first + g, pixel[g]);
      } else {
        for (const T*& at : pixel[g]) at = a.zeros;
      }
    }
    for (int64_t c = a.channel_begin; c < a.channel_end; c += kLanes) {
      Lanes to[kTogether][kWinogradPlaces];
      for (int g = 0; g < kTogether; ++g) transform_pixels<Matrix>(pixel[g], c, to[g]);
      const int64_t own = c - a.channel_begin;
      T* out = a.out + own / kPanel * a.strides.panel +
               (first - begin) / kTogether * a.strides.square + own % kPanel * kTogether;
#pragma GCC unroll 36
      for (int i = 0; i < kWinogradPlaces; ++i) store_groups(to, i, out + i * a.strides.place);
    }
  }
}

template <class T>
void patches(const WinogradSquaresArgs<T>& a, int64_t begin, int64_t end) {
  a.grouped ? transform<T, Patch, 1, kGroup<T>>(a, begin, end)
            : transform<T, Patch, 1, 1>(a, begin, end);
}
template <class T>
void squares(const WinogradSquaresArgs<T>& a, int64_t begin, int64_t end) {
  transform<T, Square, 0, kGroup<T>>(a, begin, end);
}

template <class T>
void weight(const WinogradWeightArgs<T>& a, int64_t begin, int64_t end) {
  const int64_t inputs = a.backward ? a.rows : a.columns;
  const int64_t by_output = a.backward ? 9 : a.columns * 9;
  const int64_t by_input = a.backward ? a.columns * 9 : 9;
  for (int64_t panel = begin; panel < end; ++panel) {
    T* packed = a.packed + panel * kWinogradPlaces * a.place;
    for (int64_t o = 0; o < kPanel; o += kLanes) {
      for (int64_t first = 0; first < inputs; first += kGroup<T>) {
        Lanes to[kGroup<T>][kWinogradPlaces];
        for (int g = 0; g < kGroup<T>; ++g) {
          const T* from = a.weight + (panel * kPanel + o) * by_output + (first + g) * by_input;
          alignas(64) float tap[9][kLanes];
          for (int64_t lane = 0; lane < kLanes; ++lane) {
#pragma GCC unroll 9
            for (int t = 0; t < 9; ++t) {
              tap[a.backward ? 8 - t : t][lane] = to_float(from[lane * by_output + t]);
            }
          }
          Lanes taps[9];
#pragma GCC unroll 9
          for (int t = 0; t < 9; ++t) taps[t] = load_lanes(tap[t]);
          multiply_both<Weight>(taps, to[g]);
        }
#pragma GCC unroll 36
        for (int p = 0; p < kWinogradPlaces; ++p) {
          store_groups(to, p, packed + p * a.place + first * kPanel + o * kGroup<T>);
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
      for (int i = 0; i < kWinogradPlaces; ++i)
        from[i] = load_lanes(products + i * a.strides.place);
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
          if (kUse == ResultUse::kAdd) value += load_lanes(at);
          value = store_lanes(value, at);
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
    store_lanes(first, a.first + c);
    store_lanes(sum, a.sum + c);
    store_lanes(sums_of_squares, a.squares + c);
  }
}

template <class T>
void result(const WinogradResultArgs<T>& a, int64_t begin, int64_t end) {
  if (a.adds) return result_as<T, ResultUse::kAdd>(a, begin, end);
  a.sum != nullptr ? result_as<T, ResultUse::kMeasure>(a, begin, end)
                   : result_as<T, ResultUse::kStore>(a, begin, end);
}

// Adds the gradients of the outputs [begin, end).
void add_gradient(const WinogradGradientArgs& a, int64_t begin, int64_t end) {
  const int64_t step = a.outputs * a.inputs;
  for (int64_t o = begin; o < end; ++o) {
    for (int64_t i = 0; i < a.inputs; i += kLanes) {
      const float* products = a.products + o * a.inputs + i;
      Lanes from[kWinogradPlaces], to[9];
#pragma GCC unroll 36
      for (int p = 0; p < kWinogradPlaces; ++p) from[p] = load_lanes(products + p * step);
      multiply_both<Taps>(from, to);
      alignas(64) float tap[9][kLanes];
#pragma GCC unroll 9
      for (int t = 0; t < 9; ++t) store_lanes(to[t], tap[t]);
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
