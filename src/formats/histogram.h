// Histograms with TensorFlow's buckets (tensorflow/core/lib/histogram/histogram.cc): exponential
// limits +-1e-12 * 1.1^k up to 1e20, and 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

// Bucket i holds the values from limits[i - 1] on to below limits[i]; runs of empty buckets are
// one.
struct Histogram {
  double min = 0, max = 0;  // 0 without values
  double count = 0, sum = 0, sum_squares = 0;
  std::vector<double> limits;  // ascending
  std::vector<double> counts;  // [limits]
};

// Counts values, at about 7 ns each: the upper bits of a float find its bucket in a table.
class HistogramCounter {
 public:
  HistogramCounter();
  // Of each value times `factor`. What is not finite is left out.
  void add(std::span<const float> values, float factor = 1);
  void add(const HistogramCounter& other);
  Histogram result() const;

 private:
  std::vector<int64_t> counts_;  // by limit
  int64_t count_ = 0;
  double min_, max_, sum_ = 0, sum_squares_ = 0;
};

// All limits, ascending, the last the largest double.
const std::vector<double>& histogram_limits();

}  // namespace lockstep
