// A confusion matrix as pixels: what its pictures (report/compare/confusion_picture.h) and the
// events of a run have in common.
#pragma once

#include <vector>

#include "formats/png_file.h"
#include "metrics/confusion.h"

namespace lockstep {

// Of the items of a row in one cell, 0 to 1. `confusion` must outlive it.
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

// White at 0, the full colour at 1: blue for right answers, red for mistakes. The root shows rare
// mistakes as well.
RgbColor confusion_color(double share, bool right);

// A square a cell, at least one pixel wide, about `side` pixels in all.
RgbImage confusion_pixels(const Confusion& confusion, int64_t side = 640);

}  // namespace lockstep
