// The sinusoidal positions of a network (Vaswani et al. 2017, section 3.5), computed as far as they
// are needed.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

namespace lockstep {

// Fp32 rows [count, width] that live as long as somebody holds them.
using PositionRows = std::shared_ptr<const float>;

// Thread-safe.
class PositionTable {
 public:
  // `halves`: sines, then cosines, as in Tensor2Tensor; else in turns (nn/embedding.h has the
  // formulas).
  PositionTable(int64_t width, bool halves) : width_(width), halves_(halves) {}
  // Returns at least `count` rows.
  PositionRows rows(int64_t count) const;

 private:
  int64_t width_;
  bool halves_;
  mutable std::mutex mutex_;
  mutable PositionRows rows_;
  mutable int64_t count_ = 0;
};

// Writes the rows [0, count) of such a table to `out`, fp32 [count, width].
void fill_positions(int64_t count, int64_t width, bool halves, float* out);

}  // namespace lockstep
