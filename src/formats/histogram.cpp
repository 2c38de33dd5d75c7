#include "formats/histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace lockstep {

namespace {

constexpr int kKeyShift = 18;  // keeps exponent and 5 bits of the mantissa: steps of 1/32
constexpr uint32_t kKeys = 1u << (31 - kKeyShift);
constexpr uint32_t kInfinity = 0x7f800000;  // its bits; all non-finite values have at least these

// Finds the place of a magnitude among the positive limits.
struct Magnitudes {
  std::vector<double> limits;  // ascending; the last is the largest double
  // For each key: how many limits are at most its smallest value. At most one more lies within the
  // key.
  std::array<uint16_t, kKeys> at_most = {};

  Magnitudes() {
    for (double v = 1e-12; v < 1e20; v *= 1.1) limits.push_back(v);
    limits.push_back(std::numeric_limits<double>::max());
    for (uint32_t key = 0; key < kKeys; ++key) {
      const auto smallest = static_cast<double>(std::bit_cast<float>(key << kKeyShift));
      const auto found = std::upper_bound(limits.begin(), limits.end(), smallest);
      at_most[key] = static_cast<uint16_t>(found - limits.begin());
    }
  }
};

const Magnitudes& magnitudes() {
  static const Magnitudes all;
  return all;
}

}  // namespace

const std::vector<double>& histogram_limits() {
  static const std::vector<double> limits = [] {
    const std::vector<double>& positive = magnitudes().limits;
    std::vector<double> out(positive.rbegin(), positive.rend());
    for (double& limit : out) limit = -limit;
    out.push_back(0);
    out.insert(out.end(), positive.begin(), positive.end());
    return out;
  }();
  return limits;
}

HistogramCounter::HistogramCounter()
    : counts_(histogram_limits().size()),
      min_(std::numeric_limits<double>::infinity()),
      max_(-std::numeric_limits<double>::infinity()) {}

// The bucket is computed without branches that depend on the value: signs of weights are as good as
// random.
void HistogramCounter::add(std::span<const float> values, float factor) {
  const Magnitudes& all = magnitudes();
  const double* limits = all.limits.data();
  const auto zero = static_cast<int64_t>(all.limits.size());  // index of the limit 0
  int64_t* counts = counts_.data();
  int64_t left_out = 0;
  double low = min_, high = max_, sum = 0, squares = 0;
  for (float given : values) {
    const float value = given * factor;
    const uint32_t magnitude_bits = std::bit_cast<uint32_t>(value) & 0x7fffffffu;
    if (magnitude_bits >= kInfinity) {
      ++left_out;
      continue;
    }
    const auto exact = static_cast<double>(value), magnitude = std::abs(exact);
    int64_t n = all.at_most[magnitude_bits >> kKeyShift];
    n += static_cast<int64_t>(limits[n] <= magnitude);  // number of limits <= the magnitude
    const int64_t some = static_cast<int64_t>(n > 0);
    const int64_t below = n - (some & static_cast<int64_t>(limits[n - some] == magnitude));
    const auto negative = static_cast<int64_t>(value < 0);
    ++counts[zero + (1 - negative) * (1 + n) - negative * below];
    low = std::min(low, exact);
    high = std::max(high, exact);
    sum += exact;
    squares += exact * exact;
  }
  count_ += std::ssize(values) - left_out;
  min_ = low;
  max_ = high;
  sum_ += sum;
  sum_squares_ += squares;
}

void HistogramCounter::add(const HistogramCounter& other) {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
  sum_squares_ += other.sum_squares_;
}

Histogram HistogramCounter::result() const {
  Histogram out;
  if (count_ == 0) return out;
  out.min = min_;
  out.max = max_;
  out.count = static_cast<double>(count_);
  out.sum = sum_;
  out.sum_squares = sum_squares_;
  const std::vector<double>& limits = histogram_limits();
  int64_t left = count_;
  for (std::size_t i = 0; left > 0; ++i) {
    while (counts_[i] == 0 && counts_[i + 1] == 0) ++i;
    out.limits.push_back(limits[i]);
    out.counts.push_back(static_cast<double>(counts_[i]));
    left -= counts_[i];
  }
  return out;
}

}  // namespace lockstep
