// Where an axis has its marks, and what they are called.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

struct Ticks {
  std::vector<double> at;           // ascending; the first is <= low and the last >= high
  std::vector<std::string> labels;  // one each; empty: a mark without a label
};

// About `count` marks a person can reckon with (1, 2, 2.5 or 5 times a power of ten apart) that
// enclose [low, high]. REQUIRES: low <= high, both finite; equal ones get room on both sides.
Ticks linear_ticks(double low, double high, int count);
// The same with whole numbers alone: 0, 1, 2 rather than 0, 0.5, 1.
Ticks whole_ticks(double low, double high, int count);
// Powers of ten; with fewer than two decades also 2 and 5 times them. REQUIRES: 0 < low <= high.
Ticks log_ticks(double low, double high);

// The numbers with as few digits as tell them apart from their neighbours: 0.25, 1,000, 2e-05.
std::vector<std::string> tick_labels(const std::vector<double>& values);

}  // namespace lockstep
