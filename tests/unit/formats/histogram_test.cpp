#include "formats/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/random.h"

namespace lockstep {
namespace {

// Which limit a value belongs to, by definition: the first that is greater.
std::map<double, double> slow_counts(const std::vector<float>& values) {
  std::map<double, double> out;
  const std::vector<double>& limits = histogram_limits();
  for (float v : values) {
    ++out[*std::upper_bound(limits.begin(), limits.end(), static_cast<double>(v))];
  }
  return out;
}

std::map<double, double> counts_of(const Histogram& histogram) {
  std::map<double, double> out;
  for (std::size_t i = 0; i < histogram.limits.size(); ++i) {
    if (histogram.counts[i] > 0) out[histogram.limits[i]] = histogram.counts[i];
  }
  return out;
}

TEST(Histogram, HasTensorFlowsLimits) {
  const std::vector<double>& limits = histogram_limits();
  ASSERT_EQ(limits.size(), 2 * 775 + 1u);
  EXPECT_EQ(limits.front(), -std::numeric_limits<double>::max());
  EXPECT_EQ(limits[775], 0);
  EXPECT_EQ(limits[776], 1e-12);
  EXPECT_EQ(limits[777], 1e-12 * 1.1);
  EXPECT_EQ(limits[774], -1e-12);
  EXPECT_TRUE(std::is_sorted(limits.begin(), limits.end()));
}

TEST(Histogram, PutsEveryValueWhereItsDefinitionSays) {
  std::vector<float> values = {0.0f, -0.0f, 1e-38f, -1e-38f, 3e38f, -3e38f, 1e-45f, 1.0f, -1.0f};
  uint64_t counter = 0;
  for (int i = 0; i < 20000; ++i) {  // all magnitudes, both signs
    const auto bits = static_cast<double>(random_below(7, counter++, 1u << 20)) / (1 << 20);
    const auto sign = random_below(7, counter++, 2) == 0 ? 1.0 : -1.0;
    values.push_back(static_cast<float>(sign * std::pow(10.0, 60 * bits - 35)));
  }
  for (double limit : histogram_limits()) {  // and beside every limit
    const auto near = static_cast<float>(limit);
    if (!std::isfinite(near)) continue;
    for (float v : {near, std::nextafter(near, 0.0f), std::nextafter(near, 1e30f)}) {
      values.push_back(v);
    }
  }
  std::erase_if(values, [](float v) { return !std::isfinite(v); });
  HistogramCounter counter_of;
  counter_of.add(values);
  const Histogram histogram = counter_of.result();
  EXPECT_EQ(counts_of(histogram), slow_counts(values));
  EXPECT_EQ(histogram.count, static_cast<double>(values.size()));
  EXPECT_EQ(histogram.max, 3e38f);
  EXPECT_TRUE(std::is_sorted(histogram.limits.begin(), histogram.limits.end()));
  EXPECT_EQ(histogram.counts.front(), 0) << "the left edge of the first values";
  EXPECT_GT(histogram.counts.back(), 0);
}

TEST(Histogram, AddsUpTimesAFactorAndLeavesOutWhatIsNotFinite) {
  const float inf = std::numeric_limits<float>::infinity();
  HistogramCounter all, first, second;
  first.add(std::vector<float>{2, -4, inf, std::nanf("")}, 0.5f);
  second.add(std::vector<float>{3});
  all.add(first);
  all.add(second);
  const Histogram h = all.result();
  EXPECT_EQ(h.count, 3);
  EXPECT_EQ(h.min, -2);
  EXPECT_EQ(h.max, 3);
  EXPECT_EQ(h.sum, 2);
  EXPECT_EQ(h.sum_squares, 1 + 4 + 9);
  EXPECT_EQ(counts_of(h), slow_counts({1, -2, 3}));
  EXPECT_LE(h.limits.size(), 2 * 3 + 1u) << "empty buckets in a row are one";
}

TEST(Histogram, OfNothingIsEmpty) {
  const Histogram h = HistogramCounter().result();
  EXPECT_EQ(h.count, 0);
  EXPECT_TRUE(h.limits.empty());
}

}  // namespace
}  // namespace lockstep
