#include "data/steps/step_size.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(PerRankConfig, TellsTheWholeStepOnceTheRanksAreKnown) {
  PerRankConfig config;
  config.per_rank = 256;
  TomlWriter before, after;
  config.describe(before, "images");
  EXPECT_NE(before.text().find("per_rank = 256  # images of a micro-batch of one rank"),
            std::string::npos);
  EXPECT_EQ(config.settle(2, 3), 1536);
  config.describe(after, "images");
  EXPECT_NE(after.text().find("; here 256 x 2 ranks x 3 micro-batches = 1536 a step\n"),
            std::string::npos)
      << after.text();
}

TEST(EpochSteps, DivideTheItemsInTheirOrder) {
  const EpochSteps steps(10);
  EXPECT_EQ(steps.full_steps(0, 23), 2);
  EXPECT_EQ(steps.range(0, 1, 23).begin, 10);
  EXPECT_EQ(steps.range(0, 2, 23).count(), 3);
  EXPECT_EQ(steps.range(0, 3, 23).count(), 0);
}

TEST(EpochSteps, OfTheContinuedEpochBeginAsTheyWere) {
  EpochSteps steps(4);
  steps.continue_epoch(3, {{2, {10, "images"}}, {1, {5, "images"}}});
  EXPECT_EQ(steps.range(3, 0, 40).count(), 10);
  EXPECT_EQ(steps.range(3, 1, 40).begin, 10);
  EXPECT_EQ(steps.range(3, 2, 40).begin, 20);
  EXPECT_EQ(steps.range(3, 2, 40).count(), 5);
  EXPECT_EQ(steps.range(3, 3, 40).begin, 25);
  EXPECT_EQ(steps.range(3, 3, 40).count(), 4);
  EXPECT_EQ(steps.full_steps(3, 40), 3 + 3);
  EXPECT_EQ(steps.range(3, 6, 40).count(), 3);
  EXPECT_EQ(steps.full_steps(4, 40), 10) << "other epochs are as configured";
}

// The last step of a finished epoch lacked items.
TEST(EpochSteps, OfAFinishedEpochLeaveNothing) {
  EpochSteps steps(4);
  steps.continue_epoch(0, {{3, {10, "images"}}});
  EXPECT_EQ(steps.full_steps(0, 23), 3);
  EXPECT_EQ(steps.range(0, 3, 23).count(), 0);
}

}  // namespace
}  // namespace lockstep
