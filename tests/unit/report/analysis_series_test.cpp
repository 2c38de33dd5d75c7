#include "report/run/analysis_series.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep {
namespace {

TEST(AnalysisSeries, BinsKeepTheMeanAndLeaveOutWhatIsNotFinite) {
  std::vector<Point> points;
  for (int i = 0; i < 1000; ++i) points.push_back({static_cast<double>(i), 2.0 * i});
  points.push_back({1000, std::nan("")});
  const std::vector<Point> out = binned(points, 10);
  ASSERT_EQ(out.size(), 10u);
  EXPECT_DOUBLE_EQ(out[0].x, 49.5);
  EXPECT_DOUBLE_EQ(out[9].y, 2 * 949.5);
  EXPECT_EQ(binned(points, 2000).size(), 1000u);
}

// Values of R: summary(lm(c(1.1, 1.9, 3.2, 3.8) ~ c(1, 2, 3, 4))).
TEST(AnalysisSeries, TheLineHasTheStandardErrorOfItsSlope) {
  const LineFit fit = fit_line({{1, 1.1}, {2, 1.9}, {3, 3.2}, {4, 3.8}});
  EXPECT_NEAR(fit.slope, 0.94, 1e-12);
  EXPECT_NEAR(fit.intercept, 0.15, 1e-12);
  EXPECT_NEAR(fit.slope_error, 0.0906, 1e-4);
  EXPECT_NEAR(fit.slope_margin(), 4.303 * 0.0906, 1e-3);
}

TEST(AnalysisSeries, StudentsQuantilesAreThoseOfTheTables) {
  EXPECT_NEAR(student_quantile(1), 12.706, 1e-3);
  EXPECT_NEAR(student_quantile(10), 2.228, 1e-3);
  EXPECT_NEAR(student_quantile(20), 2.086, 2e-3);
  EXPECT_NEAR(student_quantile(120), 1.980, 1e-3);
  EXPECT_TRUE(std::isinf(student_quantile(0)));
}

}  // namespace
}  // namespace lockstep
