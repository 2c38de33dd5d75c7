#include "report/answers/convergence.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace lockstep {
namespace {

// Between -1 and 1, the same every time.
double noise(uint64_t i, uint64_t key) {
  return static_cast<double>(random_below(key, i, 2001)) / 1000 - 1;
}

template <class Curve>
std::vector<Point> curve(int count, double scatter, Curve value, uint64_t key = 7) {
  std::vector<Point> out;
  for (int i = 1; i <= count; ++i) {
    const double x = 1000.0 * i;
    out.push_back({x, value(x) + scatter * noise(static_cast<uint64_t>(i), key)});
  }
  return out;
}

TEST(AnalysisTrend, ALineUpwardsIsStillImproving) {
  const Trend trend = judge_trend(curve(20, 0.1, [](double x) { return x / 1000; }), true);
  EXPECT_EQ(trend.kind, TrendKind::kImproving);
  EXPECT_EQ(trend.evaluations, 10);
  EXPECT_NEAR(trend.slope, 1e-3, 5e-5);
  EXPECT_LT(trend.margin, 1e-4);
  EXPECT_NEAR(trend.gain_of_tenth, 2, 0.1);
}

TEST(AnalysisTrend, LowerIsBetterTurnsTheSign) {
  const auto points = curve(20, 0.01, [](double x) { return 5 - x / 10000; });
  EXPECT_EQ(judge_trend(points, false).kind, TrendKind::kImproving);
  EXPECT_EQ(judge_trend(points, true).kind, TrendKind::kWorse);
}

TEST(AnalysisTrend, ACurveThatRoseAndStaysIsLevel) {
  const auto points = curve(40, 0.02, [](double x) { return 30 - 30 * std::exp(-x / 2000); });
  EXPECT_EQ(judge_trend(points, true).kind, TrendKind::kLevel);
}

TEST(AnalysisTrend, ScatterThatHidesTheSlopeCannotBeTold) {
  const auto points = curve(8, 3, [](double x) { return x / 4000; });
  EXPECT_EQ(judge_trend(points, true).kind, TrendKind::kUnknown);
  EXPECT_EQ(judge_trend({{1, 1}, {2, 2}, {3, 3}}, true).kind, TrendKind::kUnknown);
}

TEST(AnalysisTrend, TheSaturatingFitFindsTheLimitAndTheGain) {
  const auto value = [](double x) { return 30 - 20 * std::pow(x / 1000, -0.8); };
  const double truth = value(40000) - value(20000);
  int inside = 0;
  for (uint64_t key = 1; key <= 20; ++key) {
    const auto fit = fit_saturation(curve(20, 0.05, value, key), true);
    ASSERT_TRUE(fit.has_value());
    EXPECT_NEAR(fit->end, 30, 1);
    EXPECT_NEAR(fit->gain, truth, 0.2);
    inside += fit->gain_low <= truth && truth <= fit->gain_high ? 1 : 0;
  }
  // Of 95 % intervals; a bootstrap of 20 points is somewhat too narrow.
  EXPECT_GE(inside, 16);
}

TEST(AnalysisTrend, NoBendAndTooFewPointsGiveNoForecast) {
  EXPECT_FALSE(fit_saturation({{1, 1}, {2, 2}, {3, 2.5}, {4, 2.7}}, true).has_value());
  EXPECT_FALSE(fit_saturation(curve(8, 5, [](double) { return 1.0; }), true).has_value());
}

TEST(AnalysisTrend, OverfittingHasItsTurningPoint) {
  const auto evaluation =
      curve(20, 0.01, [](double x) { return 2 + 1e-8 * (x - 8000) * (x - 8000); });
  const auto training = curve(20, 0, [](double x) { return 3 - x / 10000; });
  const Overfit out = judge_overfit(evaluation, training);
  EXPECT_EQ(out.kind, OverfitKind::kClear);
  EXPECT_NEAR(out.turning_point, 8000, 1001);
  EXPECT_GT(out.gap_last, out.gap_at_turn);
}

TEST(AnalysisTrend, AFallingOrFlatLossIsNoOverfitting) {
  const auto training = curve(20, 0, [](double x) { return 3 - x / 10000; });
  EXPECT_EQ(judge_overfit(curve(20, 0.01, [](double x) { return 3 - x / 20000; }), training).kind,
            OverfitKind::kNone);
  EXPECT_EQ(judge_overfit(curve(20, 0.01, [](double) { return 2.0; }), training).kind,
            OverfitKind::kNone);
  EXPECT_EQ(judge_overfit({{1, 1}, {2, 2}}, {{1, 1}, {2, 2}}).kind, OverfitKind::kUnknown);
}

}  // namespace
}  // namespace lockstep
