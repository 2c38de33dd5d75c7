// Draws a confusion matrix as pixels. The pictures of reports (report/compare/confusion_picture.h)
// and the events of a run share this code.
#pragma once

#include <vector>

#include "formats/png_file.h"
#include "metrics/confusion.h"

namespace lockstep {

// Returns the share of a row's items that are in one cell, 0 to 1. `confusion` must outlive this
// object.
class ConfusionShares {
 public:
  explicit ConfusionShares(const Confusion& confusion);
  double at(int64_t row, int64_t column) const {
    return static_cast<double>(confusion_.at(row, column)) / totals_[row];
  }

 private:
  const Confusion& confusion_;
  std::vector<double> totals_;
};

// Returns white for 0 and the full colour for 1: blue for right answers, red for mistakes. The
// colour's depth is the root of `share`, so that rare mistakes are visible.
RgbColor confusion_color(double share, bool right);

// Draws each cell as a square, at least one pixel wide. The whole picture is about `side` pixels
// wide.
RgbImage confusion_pixels(const Confusion& confusion, int64_t side = 640);

}  // namespace lockstep
