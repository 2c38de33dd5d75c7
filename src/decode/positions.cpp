#include "decode/positions.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace lockstep {

void fill_positions(int64_t count, int64_t width, bool halves, float* out) {
  const int64_t waves = (width + 1) / 2;
  const double step =
      halves ? 1.0 / static_cast<double>(waves - 1) : 2.0 / static_cast<double>(width);
  for (int64_t wave = 0; wave < waves; ++wave) {
    // Computed in double: the angles grow to the length of the longest sentence, where fp32 would
    // lose digits.
    const double length = std::pow(10000.0, static_cast<double>(wave) * step);
    const int64_t sine = halves ? wave : 2 * wave, cosine = halves ? waves + wave : 2 * wave + 1;
    for (int64_t position = 0; position < count; ++position) {
      const double angle = static_cast<double>(position) / length;
      float* row = out + position * width;
      if (sine < width) row[sine] = static_cast<float>(std::sin(angle));
      if (cosine < width) row[cosine] = static_cast<float>(std::cos(angle));
    }
  }
}

PositionRows PositionTable::rows(int64_t count) const {
  constexpr int64_t kFirst = 64;  // enough for most sentences
  std::lock_guard lock(mutex_);
  if (count > count_) {
    count_ = std::max({count, 2 * count_, kFirst});
    std::shared_ptr<float> rows(new float[static_cast<std::size_t>(count_ * width_)],
                                std::default_delete<float[]>());
    fill_positions(count_, width_, halves_, rows.get());
    rows_ = rows;
  }
  return rows_;
}

}  // namespace lockstep
