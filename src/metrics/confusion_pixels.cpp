#include "metrics/confusion_pixels.h"

#include <algorithm>
#include <cmath>

namespace lockstep {

ConfusionShares::ConfusionShares(const Confusion& confusion) : confusion_(confusion) {
  for (int64_t row = 0; row < confusion.size(); ++row) {
    totals_.push_back(static_cast<double>(std::max<int64_t>(1, class_score(confusion, row).items)));
  }
}

RgbColor confusion_color(double share, bool right) {
  const RgbColor full = right ? RgbColor{8, 69, 148} : RgbColor{165, 15, 21};
  const double depth = std::sqrt(std::clamp(share, 0.0, 1.0));
  auto mix = [&](int to) { return static_cast<uint8_t>(std::lround(255 + (to - 255) * depth)); };
  return {mix(full[0]), mix(full[1]), mix(full[2])};
}

RgbImage confusion_pixels(const Confusion& confusion, int64_t side) {
  const int64_t n = confusion.size();
  const int64_t cell = std::max<int64_t>(1, side / std::max<int64_t>(1, n));
  const ConfusionShares shares(confusion);
  RgbImage out(n * cell, n * cell);
  for (int64_t row = 0; row < n; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      if (confusion.at(row, column) == 0) continue;
      out.fill(column * cell, row * cell, cell, cell,
               confusion_color(shares.at(row, column), row == column));
    }
  }
  return out;
}

}  // namespace lockstep
