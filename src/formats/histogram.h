// Histograms with TensorFlow's buckets (tensorflow/core/lib/histogram/histogram.cc): their limits
// are 0 and, growing exponentially, +-1e-12 * 1.1^k up to 1e20.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

// Bucket i holds the values v with limits[i - 1] <= v < limits[i]. A run of empty buckets is stored
// as one.
struct Histogram {
  double min = 0, max = 0;  // both are 0 if there are no values
  double count = 0, sum = 0, sum_squares = 0;
  std::vector<double> limits;  // ascending
  std::vector<double> counts;  // [limits]
};

// Counts values at about 7 ns each: the upper bits of a float select its bucket in a table.
class HistogramCounter {
 public:
  HistogramCounter();
  // Adds each value times `factor`. Results that are not finite are left out.
  void add(std::span<const float> values, float factor = 1);
  void add(const HistogramCounter& other);
  Histogram result() const;

 private:
  std::vector<int64_t> counts_;  // indexed like histogram_limits()
  int64_t count_ = 0;
  double min_, max_, sum_ = 0, sum_squares_ = 0;
};

// Returns all limits, ascending. The last is the largest double.
const std::vector<double>& histogram_limits();

}  // namespace lockstep
