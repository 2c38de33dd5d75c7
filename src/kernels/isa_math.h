// Defines what the *_isa.cpp files share. Everything is in the namespace of the
// instruction set, and nothing of the standard library is called: the linker must never keep an
// inline function compiled for AVX-512 as the one copy that a CPU without AVX-512 runs too.
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"
#include "kernels/scalar_math.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {

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
      words[j] = mixed_word(low + j, high);
    }
  }
  // The low half of a pair is the even column: every machine this runs on is little-endian.
  const Half* halves() const { return reinterpret_cast<const Half*>(words); }
};

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
