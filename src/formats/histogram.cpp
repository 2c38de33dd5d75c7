#include "formats/histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace lockstep {

namespace {

constexpr int kKeyShift = 18;  // leaves sign, exponent and 5 bits of the mantissa: steps of 1/32
constexpr uint32_t kKeys = 1u << (31 - kKeyShift);

// Where a magnitude belongs among the positive limits.
struct Magnitudes {
  std::vector<double> limits;                // ascending, the last the largest double
  std::array<uint16_t, kKeys> at_most = {};  // by key: limits that are at most its smallest value

  Magnitudes() {
    for (double v = 1e-12; v < 1e20; v *= 1.1) limits.push_back(v);
    limits.push_back(std::numeric_limits<double>::max());
    for (uint32_t key = 0; key < kKeys; ++key) {
      const auto smallest = static_cast<double>(std::bit_cast<float>(key << kKeyShift));
      const auto found = std::upper_bound(limits.begin(), limits.end(), smallest);
      at_most[key] = static_cast<uint16_t>(found - limits.begin());
    }
  }

  // Limits that are at most `magnitude`. Between the smallest values of two keys lies one at most.
  std::size_t count_at_most(float magnitude) const {
    const std::size_t n = at_most[std::bit_cast<uint32_t>(magnitude) >> kKeyShift];
    return n + (limits[n] <= static_cast<double>(magnitude) ? 1 : 0);
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

void HistogramCounter::add(std::span<const float> values, float factor) {
  const Magnitudes& all = magnitudes();
  const std::size_t zero = all.limits.size();  // number of the limit 0
  for (float given : values) {
    const float value = given * factor;
    if (!std::isfinite(value)) continue;
    const float magnitude = std::abs(value);
    std::size_t n = all.count_at_most(magnitude);
    if (value >= 0) {
      ++counts_[zero + 1 + n];
    } else {
      if (n > 0 && all.limits[n - 1] == static_cast<double>(magnitude)) --n;  // those below it
      ++counts_[zero - n];
    }
    const auto exact = static_cast<double>(value);
    ++count_;
    min_ = std::min(min_, exact);
    max_ = std::max(max_, exact);
    sum_ += exact;
    sum_squares_ += exact * exact;
  }
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
