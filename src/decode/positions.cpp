#include "decode/positions.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace lockstep {

namespace {

// Writes the rows of the positions [first, first + count) to `out`, fp32 [count, width].
void fill_positions(int64_t first, int64_t count, int64_t width, PositionLayout layout,
                    float* out) {
  const bool halves = layout != PositionLayout::kInterleaved;
  const int64_t waves = (width + 1) / 2;
  const double step = layout == PositionLayout::kHalves ? 1.0 / static_cast<double>(waves - 1)
                                                        : 2.0 / static_cast<double>(width);
  for (int64_t wave = 0; wave < waves; ++wave) {
    // Computed in double: the angles grow to the length of the longest sentence, where fp32 would
    // lose digits.
    const double length = std::pow(10000.0, static_cast<double>(wave) * step);
    const int64_t sine = halves ? wave : 2 * wave, cosine = halves ? waves + wave : 2 * wave + 1;
    for (int64_t r = 0; r < count; ++r) {
      const double angle = static_cast<double>(first + r) / length;
      float* row = out + r * width;
      if (sine < width) row[sine] = static_cast<float>(std::sin(angle));
      if (cosine < width) row[cosine] = static_cast<float>(std::cos(angle));
    }
  }
}

}  // namespace

PositionLayout position_layout(std::string_view name) {
  if (name == "halves") return PositionLayout::kHalves;
  return name == "paper_halves" ? PositionLayout::kPaperHalves : PositionLayout::kInterleaved;
}

PositionRows PositionTable::rows(int64_t count) const {
  constexpr int64_t kFirst = 64;  // enough for most sentences
  std::lock_guard lock(mutex_);
  if (count > count_) {
    count_ = std::max({count, 2 * count_, kFirst});
    std::shared_ptr<float> rows(new float[static_cast<std::size_t>(count_ * width_)],
                                std::default_delete<float[]>());
    fill_positions(first_, count_, width_, layout_, rows.get());
    rows_ = rows;
  }
  return rows_;
}

}  // namespace lockstep
