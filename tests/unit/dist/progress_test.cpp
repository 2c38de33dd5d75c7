#include "dist/account/progress.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep {
namespace {

TEST(Progress, SaysStepPhaseAndTheOperationThatIsWaitedFor) {
  RankProgress progress;
  EXPECT_EQ(progress.view().phase, Phase::kStarting);
  progress.begin_step(12, 3);
  progress.enter(Phase::kBackward);
  uint64_t sequence = progress.start_operation("gradient bucket 3", 1024, "fp32");
  ProgressView view = progress.view();
  EXPECT_EQ(view.step, 12);
  EXPECT_EQ(view.epoch, 3);
  EXPECT_STREQ(name_of(view.phase), "backward");
  EXPECT_EQ(view.started, sequence);
  EXPECT_EQ(view.waiting, 0u);
  {
    RankProgress::Waiting waiting(progress, sequence);
    EXPECT_EQ(progress.view().waiting, sequence);
  }
  EXPECT_EQ(progress.view().waiting, 0u);
  EXPECT_EQ(progress.last_operation().text(), "gradient bucket 3, 1,024 x fp32 (operation 1)");
}

TEST(Progress, AddsUpHowStepsSpentTheirTime) {
  RankProgress progress;
  StepSums step{.steps = 1, .targets = 100, .compute_seconds = 2, .wait_seconds = 1};
  progress.end_step(step);
  progress.end_step(step);
  StepSums sums = progress.view().sums;
  EXPECT_EQ(sums.steps, 2);
  EXPECT_EQ(sums.targets, 200);
  EXPECT_EQ(sums.seconds(), 6);
}

TEST(Progress, FingerprintsAreEqualUntilAnOperationDiffersAndNeverAgain) {
  RankProgress a, b;
  for (int i = 0; i < 3; ++i) {
    a.start_operation("barrier", 0, "");
    b.start_operation("barrier", 0, "");
  }
  EXPECT_EQ(a.last_operation().fingerprint, b.last_operation().fingerprint);
  a.start_operation("sum", 10, "fp32");
  b.start_operation("sum", 10, "bf16");
  EXPECT_NE(a.last_operation().fingerprint, b.last_operation().fingerprint);
  a.start_operation("barrier", 0, "");
  b.start_operation("barrier", 0, "");
  EXPECT_EQ(a.last_operation().own_hash(), b.last_operation().own_hash());
  EXPECT_NE(a.last_operation().fingerprint, b.last_operation().fingerprint);
}

TEST(Progress, RemembersTheNewestOperationsAndCutsLongNames) {
  RankProgress progress;
  const std::size_t all = RankProgress::kRemembered + 10;
  for (std::size_t i = 0; i < all; ++i) progress.start_operation(std::string(100, 'x'), 1, "byte");
  auto newest = progress.operations(3);
  ASSERT_EQ(newest.size(), 3u);
  EXPECT_EQ(newest[0].sequence, all - 2);
  EXPECT_EQ(newest[2].sequence, all);
  EXPECT_EQ(std::string(newest[2].name).size(), sizeof newest[2].name - 1);
  EXPECT_FALSE(progress.operation(10));
  ASSERT_TRUE(progress.operation(11));
  EXPECT_EQ(progress.operation(11)->sequence, 11u);
  EXPECT_FALSE(progress.operation(all + 1));
}

}  // namespace
}  // namespace lockstep
