// Defines the arithmetic that the kernels of rows share (row_kernels.h).
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"

#define LOCKSTEP_ISA gpu_rows
#include "kernels/scalar_math.h"

namespace lockstep {
namespace detail {
namespace gpu_rows {

// What dropout and a row's scale make of the columns of one row.
class RowFactors {
 public:
  LOCKSTEP_ANYWHERE RowFactors(const DropoutRows& dropout, int64_t row, float row_scale = 1)
      : RowFactors(dropout, row, 1, 0, row_scale) {}

  // Of row `part` of `parts` rows that share the key of `row`.
  LOCKSTEP_ANYWHERE RowFactors(const DropoutRows& dropout, int64_t row, int64_t parts, int64_t part,
                               float row_scale = 1)
      : bits_(dropout.threshold == 0 ? 0 : row_bits(dropout.key, dropout.rows[row], parts, part)),
        threshold_(dropout.threshold),
        kept_((dropout.threshold == 0 ? 1.0f : dropout.scale) * row_scale) {}

  LOCKSTEP_ANYWHERE float of(int64_t column) const {
    if (threshold_ == 0) return kept_;
    const uint32_t word = random_word(bits_, column / 2);
    const uint32_t half = column % 2 == 0 ? word & 0xffffu : word >> 16;
    return half >= threshold_ ? kept_ : 0.0f;
  }

 private:
  uint64_t bits_;
  uint32_t threshold_;
  float kept_;
};

}  // namespace gpu_rows
}  // namespace detail
}  // namespace lockstep
