#include "base/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep {
namespace {

TEST(Statistics, QuantilesAreThoseOfNumpy) {
  const std::vector<double> values = {4, 1, 3, 2, 10};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 3);
  EXPECT_DOUBLE_EQ(quantile(values, 0.95), 8.8);  // numpy.quantile(values, 0.95)
  EXPECT_DOUBLE_EQ(quantile(values, 1), 10);
}

TEST(Statistics, TheMedianOfAnEvenNumberLiesBetweenTheMiddleTwo) {
  EXPECT_DOUBLE_EQ(median({7}), 7);
  EXPECT_DOUBLE_EQ(median({4, 1, 2, 10}), 3);
  EXPECT_DOUBLE_EQ(mean({4, 1, 2, 10}), 4.25);
}

TEST(Statistics, NothingHasNoMiddle) {
  EXPECT_TRUE(std::isnan(mean({})));
  EXPECT_TRUE(std::isnan(median({})));
  EXPECT_TRUE(std::isnan(quantile({}, 0.95)));
  EXPECT_TRUE(std::isnan(robust_deviation({})));
}

TEST(Statistics, TheRobustDeviationDoesNotSeeOneOutlier) {
  EXPECT_NEAR(robust_deviation({1, 2, 3, 4, 5}), 1.4826, 1e-9);
  EXPECT_NEAR(robust_deviation({1, 2, 3, 4, 5000}), 1.4826, 1e-9);
}

}  // namespace
}  // namespace lockstep
