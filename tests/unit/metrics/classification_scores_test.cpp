#include "metrics/classification_scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "metrics/correlation.h"

namespace lockstep {
namespace {

TEST(ClassificationScores, AreThoseOfTwoClasses) {
  Confusion counts({"bad", "good"});
  counts.counts = {3, 1, 2, 4};  // 3 of 4 bad ones, 4 of 6 good ones
  const ClassificationScores s = classification_scores(counts, 1);
  EXPECT_DOUBLE_EQ(s.accuracy, 0.7);
  EXPECT_DOUBLE_EQ(s.binary.precision, 4.0 / 5);
  EXPECT_DOUBLE_EQ(s.binary.recall, 4.0 / 6);
  EXPECT_DOUBLE_EQ(s.binary.f1, 8.0 / 11);
  EXPECT_DOUBLE_EQ(s.macro.precision, (3.0 / 5 + 4.0 / 5) / 2);
  EXPECT_DOUBLE_EQ(s.macro.f1, (6.0 / 9 + 8.0 / 11) / 2);
  EXPECT_DOUBLE_EQ(s.weighted.recall, 0.7);
  EXPECT_DOUBLE_EQ(s.micro.f1, 0.7);
  EXPECT_DOUBLE_EQ(classification_scores(counts, 0).binary.recall, 3.0 / 4);
}

// A class that was never seen and never answered is no class of the macro mean; one that was never
// answered has precision 0.
TEST(ClassificationScores, CountAbsentClassesAsScikitLearnDoes) {
  Confusion counts({"a", "b", "c"});
  counts.counts = {2, 0, 0, 1, 0, 0, 0, 0, 0};
  const ClassificationScores s = classification_scores(counts, 2);
  EXPECT_DOUBLE_EQ(s.macro.precision, (2.0 / 3 + 0) / 2);
  EXPECT_DOUBLE_EQ(s.macro.recall, (1.0 + 0) / 2);
  EXPECT_DOUBLE_EQ(s.binary.f1, 0);
}

TEST(Correlation, IsThatOfKnownNumbers) {
  const std::vector<double> a = {1, 2, 3, 4}, b = {1, 3, 2, 4}, same = {5, 5, 5, 5};
  EXPECT_NEAR(pearson(a, b), 0.8, 1e-12);
  EXPECT_NEAR(spearman(a, b), 0.8, 1e-12);
  EXPECT_DOUBLE_EQ(mean_squared_error(a, b), 0.5);
  EXPECT_TRUE(std::isnan(pearson(a, same)));
  EXPECT_EQ(average_ranks(std::vector<double>{3, 1, 3, 2}), (std::vector<double>{3.5, 1, 3.5, 2}));
  const std::vector<double> broken = {1, NAN, 2, 3};
  EXPECT_TRUE(std::isnan(spearman(a, broken)));
}

}  // namespace
}  // namespace lockstep
