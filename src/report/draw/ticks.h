// Chooses the ticks of an axis and their labels.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

struct Ticks {
  std::vector<double> at;           // ascending; the first is <= low and the last >= high
  std::vector<std::string> labels;  // one per tick; empty: no label
};

// Returns about `count` ticks at round numbers (1, 2, 2.5 or 5 times a power of ten apart) that
// enclose [low, high]. REQUIRES finite low <= high; equal ones get room on both sides.
Ticks linear_ticks(double low, double high, int count);
// Like linear_ticks(), at whole numbers only: 0, 1, 2 rather than 0, 0.5, 1.
Ticks whole_ticks(double low, double high, int count);
// Returns powers of ten; with fewer than two decades also 2 and 5 times them. REQUIRES 0 < low <=
// high.
Ticks log_ticks(double low, double high);

// Returns the numbers with as few digits as tell neighbours apart: 0.25, 1,000, 2e-05.
std::vector<std::string> tick_labels(const std::vector<double>& values);

}  // namespace lockstep
