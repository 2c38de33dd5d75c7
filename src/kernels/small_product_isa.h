// Multiplies small dense matrices in scratch memory, for attention over short sentences, where a
// call into a BLAS costs more than the product.
#pragma once

#include <cstdint>
#include <utility>

#include "kernels/lanes_isa.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {

// Rows of scratch matrices are padded to whole vectors of the widest instruction set.
constexpr int64_t kPadding = 16;
inline int64_t padded(int64_t n) { return (n + kPadding - 1) / kPadding * kPadding; }

// c[m, n] (+)= sum over k of a[m, k] * b[k, n]; a is read element by element at any strides.
struct SmallProduct {
  const float* a;
  int64_t a_row, a_column;
  const float* b;
  int64_t b_row;
  float* c;
  int64_t c_row;
  bool accumulate;
};

template <int kRows, int kVectors>
inline void product_tile(const SmallProduct& p, int64_t m, int64_t n, int64_t depth) {
  Lanes sum[kRows][kVectors];
  float* c = p.c + m * p.c_row + n;
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      sum[i][v] = p.accumulate ? *reinterpret_cast<const StoredLanes*>(c + i * p.c_row + v * kLanes)
                               : Lanes{};
    }
  }
  const float* a = p.a + m * p.a_row;
  const float* b = p.b + n;
  for (int64_t k = 0; k < depth; ++k, a += p.a_column, b += p.b_row) {
    Lanes row[kVectors];
    for (int v = 0; v < kVectors; ++v)
      row[v] = *reinterpret_cast<const StoredLanes*>(b + v * kLanes);
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kVectors; ++v) sum[i][v] += a[i * p.a_row] * row[v];
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      *reinterpret_cast<StoredLanes*>(c + i * p.c_row + v * kLanes) = sum[i][v];
    }
  }
}

template <int kRows>
inline void product_rows(const SmallProduct& p, int64_t m, int64_t columns, int64_t depth) {
  int64_t n = 0;
  for (; n + 2 * kLanes <= columns; n += 2 * kLanes) product_tile<kRows, 2>(p, m, n, depth);
  if (n < columns) product_tile<kRows, 1>(p, m, n, depth);
}

// Multiplies. REQUIRES: columns is a multiple of kPadding; what lies in the
// padding is computed too.
inline void multiply(const SmallProduct& p, int64_t rows, int64_t columns, int64_t depth) {
  constexpr int kBlock = kLanes >= 8 ? 6 : 4;  // the sums fill half of the registers or more
  int64_t m = 0;
  for (; m + kBlock <= rows; m += kBlock) product_rows<kBlock>(p, m, columns, depth);
  for (; m + 2 <= rows; m += 2) product_rows<2>(p, m, columns, depth);
  if (m < rows) product_rows<1>(p, m, columns, depth);
}

// Returns a[i] b[i] a[i + 1] b[i + 1] ... from i = kFirst on. Compilers make one shuffle of it.
template <int kFirst, int... kIndex>
inline Lanes interleaved(Lanes a, Lanes b, std::integer_sequence<int, kIndex...>) {
  return Lanes{(kIndex % 2 == 0 ? a : b)[kFirst + kIndex / 2]...};
}

// to[j, i] = from[i, j] for a square of kLanes. Interleaving row i with row i + kLanes / 2 rotates
// the bits of the element numbers; log2(kLanes) such rotations exchange row and column.
inline void transpose_square(const float* from, int64_t from_row, float* to, int64_t to_row) {
  constexpr std::make_integer_sequence<int, kLanes> kAll{};
  Lanes row[kLanes], next[kLanes];
  for (int i = 0; i < kLanes; ++i)
    row[i] = *reinterpret_cast<const StoredLanes*>(from + i * from_row);
  for (int stage = 1; stage < kLanes; stage *= 2) {
    for (int i = 0; i < kLanes / 2; ++i) {
      next[2 * i] = interleaved<0>(row[i], row[i + kLanes / 2], kAll);
      next[2 * i + 1] = interleaved<kLanes / 2>(row[i], row[i + kLanes / 2], kAll);
    }
    for (int i = 0; i < kLanes; ++i) row[i] = next[i];
  }
  for (int i = 0; i < kLanes; ++i) *reinterpret_cast<StoredLanes*>(to + i * to_row) = row[i];
}

// Transposes from [rows, columns] to `to` [columns, rows], both dense, both sides
// multiples of kPadding.
inline void transpose(const float* from, int64_t rows, int64_t columns, float* to) {
  for (int64_t i = 0; i < rows; i += kLanes) {
    for (int64_t j = 0; j < columns; j += kLanes) {
      transpose_square(from + i * columns + j, columns, to + j * rows + i, rows);
    }
  }
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
