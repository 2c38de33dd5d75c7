// The sinusoidal positions of a network (Vaswani et al. 2017, section 3.5), computed as far as they
// are needed.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>

namespace lockstep {

// How the sines and cosines of a position are arranged in its vector.
enum class PositionLayout {
  // PE(pos, 2i) = sin(pos / 10000^(2i/width)), PE(pos, 2i+1) = cos(same): section 3.5.
  kInterleaved,
  // PE(pos, i) = sin(pos / 10000^(i/(width/2 - 1))) for i < width/2, then the cosines, as in
  // Tensor2Tensor and thus OpenSeq2Seq. REQUIRES an even width of at least 4.
  kHalves,
  // PE(pos, i) = sin(pos / 10000^(2i/width)) for i < width/2, then the cosines: the waves of
  // kInterleaved in the order of kHalves, as Marian.
  kPaperHalves,
};

// Returns the layout that the key model.positions calls `name`: "interleaved", "halves" or
// "paper_halves".
PositionLayout position_layout(std::string_view name);

// Fp32 rows [count, width] that live as long as somebody holds them.
using PositionRows = std::shared_ptr<const float>;

// Thread-safe.
class PositionTable {
 public:
  // Row 0 is that of the position `first`.
  PositionTable(int64_t width, PositionLayout layout, int64_t first = 0)
      : width_(width), layout_(layout), first_(first) {}
  // Returns at least `count` rows.
  PositionRows rows(int64_t count) const;

 private:
  int64_t width_;
  PositionLayout layout_;
  int64_t first_;
  mutable std::mutex mutex_;
  mutable PositionRows rows_;
  mutable int64_t count_ = 0;
};

}  // namespace lockstep
