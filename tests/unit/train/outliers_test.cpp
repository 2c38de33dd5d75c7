#include "train/parts/outliers.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "train/parts/step_guard.h"

namespace lockstep {
namespace {

void feed(OutlierDetector& detector, int steps) {
  for (int i = 0; i < steps; ++i) {
    EXPECT_EQ(detector.observe(1 + 0.1 * (i % 3), 2 + 0.1 * (i % 2)).action, "");
  }
}

TEST(OutlierDetector, FindsANormManyTimesItsMean) {
  OutlierDetector detector({.norm = "skip", .norm_factor = 10});
  feed(detector, 40);
  EXPECT_EQ(detector.observe(10.9, 2).action, "");  // 9.9 times
  const Outlier found = detector.observe(20, 2);
  EXPECT_EQ(found.action, "skip");
  EXPECT_NE(found.why.find("over 41 steps"), std::string::npos) << found.why;
  EXPECT_EQ(detector.observe(20, 2).action, "skip");  // it did not raise the mean
}

TEST(OutlierDetector, FindsALossFarAboveItsMean) {
  OutlierDetector detector({.loss = "roll_back", .loss_sigmas = 6});
  feed(detector, 40);
  EXPECT_EQ(detector.observe(1, 2.2).action, "");
  EXPECT_EQ(detector.observe(1, 9).action, "roll_back");
  EXPECT_EQ(detector.observe(1, 0.1).action, "");  // a small loss is no fault
}

TEST(OutlierDetector, DoesNotJudgeTheFirstSteps) {
  OutlierDetector detector({.norm = "stop", .loss = "stop"});
  feed(detector, OutlierDetector::kFirst - 1);
  EXPECT_EQ(detector.observe(1e6, 1e6).action, "");
}

TEST(OutlierDetector, GoesOnFromItsState) {
  const GuardConfig config{.norm = "skip", .loss = "skip"};
  OutlierDetector whole(config), second(config);
  feed(whole, 50);
  second.set_state(whole.state());
  EXPECT_EQ(second.state(), whole.state());
  EXPECT_EQ(second.observe(100, 2).why, whole.observe(100, 2).why);
}

StepSigns step_with(double norm) { return {.step = 50, .loss = 2, .gradient_norm = norm}; }

TEST(StepGuard, EndsARunThatNeedsItAgainAndAgain) {
  StepGuard guard(Numerics{}, {}, {}, {.norm = "skip", .most = 2});
  for (int i = 0; i < 40; ++i) EXPECT_EQ(guard.judge(step_with(1)), StepVerdict::kUpdate);
  EXPECT_EQ(guard.judge(step_with(50)), StepVerdict::kPassOver);
  EXPECT_EQ(guard.judge(step_with(50)), StepVerdict::kPassOver);
  StepGuard resumed(Numerics{}, {}, {}, {.norm = "skip", .most = 2});
  resumed.set_state(guard.state());
  for (StepGuard* one : {&guard, &resumed}) {
    EXPECT_ERROR(one->judge(step_with(50)), DivergedError,
                 "more than 2 such steps within about 200");
  }
}

TEST(StepGuard, ForgetsInterventionsOfLongAgo) {
  StepGuard guard(Numerics{}, {}, {}, {.norm = "skip", .window = 20, .most = 1});
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 150; ++i) EXPECT_EQ(guard.judge(step_with(1)), StepVerdict::kUpdate);
    EXPECT_EQ(guard.judge(step_with(50)), StepVerdict::kPassOver);
  }
}

TEST(StepGuard, PassesOverWhatIsNotFiniteInFp32WhereItIsAsked) {
  StepGuard guard(Numerics{}, {}, {}, {.not_finite = "skip"});
  EXPECT_EQ(guard.judge({.step = 1, .loss = NAN, .gradient_norm = NAN}), StepVerdict::kPassOver);
  EXPECT_EQ(guard.judge(step_with(1)), StepVerdict::kUpdate);
}

}  // namespace
}  // namespace lockstep
