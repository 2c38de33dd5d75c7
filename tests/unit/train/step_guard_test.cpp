#include "train/parts/step_guard.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "base/error.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

const double kNan = std::nan("");
const double kInfinity = std::numeric_limits<double>::infinity();

StepGuard make_guard(at::ScalarType compute, const DivergenceConfig& divergence = {},
                     const LossScaleConfig& scaling = {}) {
  Numerics numerics;
  numerics.compute = compute;
  return StepGuard(numerics, scaling, divergence);
}

StepSigns good(int64_t step = 1, double loss = 3) {
  return {.step = step, .loss = loss, .gradient_norm = 1};
}
StepSigns bad_gradient() { return {.step = 1, .loss = 3, .gradient_norm = kInfinity}; }
StepSigns bad_loss() { return {.step = 1, .loss = kNan, .gradient_norm = kNan}; }

TEST(StepGuard, SkipsAnOverflowInHalfAndLowersTheScale) {
  StepGuard guard = make_guard(at::kHalf);
  EXPECT_EQ(guard.numerics(64).loss_scale, 256);  // 2^14 over the targets
  EXPECT_EQ(guard.judge(bad_gradient()), StepVerdict::kSkip);
  EXPECT_EQ(guard.loss_scale(), 8192);
  EXPECT_EQ(guard.judge(good()), StepVerdict::kUpdate);
  EXPECT_EQ(guard.skipped_steps(), 1);
}

TEST(StepGuard, FallsBackToFp32BelowTheSmallestScale) {
  StepGuard guard = make_guard(at::kHalf);
  for (int i = 0; i < 14; ++i) EXPECT_EQ(guard.judge(bad_gradient()), StepVerdict::kSkip);
  EXPECT_EQ(guard.judge(bad_gradient()), StepVerdict::kRepeat);
  EXPECT_EQ(guard.numerics(64).compute, at::kFloat);
  EXPECT_EQ(guard.numerics(64).loss_scale, 1);
  EXPECT_FALSE(guard.loss_scale());
  EXPECT_EQ(guard.judge(good()), StepVerdict::kUpdate);
  EXPECT_EQ(guard.numerics(64).compute, at::kFloat);

  StepGuard resumed = make_guard(at::kHalf);
  resumed.set_state(guard.state());
  EXPECT_EQ(resumed.numerics(64).compute, at::kFloat);
}

// Lost in the forward pass: no smaller loss scale would help.
TEST(StepGuard, RepeatsInFp32WhatSixteenBitsCouldNotHold) {
  for (at::ScalarType compute : {at::kHalf, at::kBFloat16}) {
    StepGuard guard = make_guard(compute);
    EXPECT_EQ(guard.judge(bad_loss()), StepVerdict::kRepeat);
    EXPECT_EQ(guard.numerics(64).compute, at::kFloat);
    EXPECT_EQ(guard.judge(good()), StepVerdict::kUpdate);
    EXPECT_EQ(guard.numerics(64).compute, compute);
  }
  StepGuard guard = make_guard(at::kBFloat16);
  EXPECT_EQ(guard.judge(bad_gradient()), StepVerdict::kRepeat);
}

TEST(StepGuard, StaysInFp32AfterManyRepetitions) {
  StepGuard guard = make_guard(at::kBFloat16);
  for (int i = 1; i < StepGuard::kMostRepeats; ++i) {
    EXPECT_EQ(guard.judge(bad_gradient()), StepVerdict::kRepeat);
    EXPECT_EQ(guard.judge(good()), StepVerdict::kUpdate);
    EXPECT_EQ(guard.numerics(1).compute, at::kBFloat16);
  }
  EXPECT_EQ(guard.judge(bad_gradient()), StepVerdict::kRepeat);
  EXPECT_EQ(guard.judge(good()), StepVerdict::kUpdate);
  EXPECT_EQ(guard.numerics(1).compute, at::kFloat);
}

TEST(StepGuard, WhatIsNotFiniteInFp32HasDiverged) {
  StepGuard plain = make_guard(at::kFloat);
  EXPECT_THROW(plain.judge(bad_loss()), DivergedError);
  StepGuard repeated = make_guard(at::kBFloat16);
  EXPECT_EQ(repeated.judge(bad_loss()), StepVerdict::kRepeat);
  EXPECT_THROW(repeated.judge(bad_loss()), DivergedError);
}

TEST(StepGuard, GoesOnFromItsState) {
  StepGuard first = make_guard(at::kHalf, {.sigmas = 5}),
            second = make_guard(at::kHalf, {.sigmas = 5});
  for (int i = 0; i < 3; ++i) first.judge(bad_gradient());
  for (int i = 0; i < 20; ++i) first.judge(good(i, 3 + 0.1 * (i % 3)));
  second.set_state(first.state());
  EXPECT_EQ(second.loss_scale(), 2048);
  EXPECT_EQ(second.skipped_steps(), 3);
  EXPECT_EQ(second.state(), first.state());
}

// A loss that falls from 9 to 3 with noise of 0.2, and then climbs.
TEST(DivergenceDetector, TellsARunawayFromNoise) {
  DivergenceDetector detector({.sigmas = 5, .window = 400, .recent = 10});
  auto noise = [](int i) { return 0.2 * std::sin(i * 12.9898); };
  int step = 0;
  for (; step < 5000; ++step) {
    const double loss = 3 + 6 * std::exp(-step / 150.0) + noise(step);
    EXPECT_EQ(detector.observe(loss), "") << step;
  }
  EXPECT_EQ(detector.observe(5), "");  // one bad batch
  for (int i = 0; i < 20; ++i) EXPECT_EQ(detector.observe(3 + noise(i)), "");
  std::string worry;
  int steps = 0;
  for (; worry.empty() && steps < 100; ++steps) worry = detector.observe(5 + noise(steps));
  EXPECT_LT(steps, 15);
  EXPECT_NE(worry.find("deviations"), std::string::npos) << worry;
}

TEST(DivergenceDetector, IsOffByDefault) {
  DivergenceDetector detector({});
  for (int i = 0; i < 200; ++i) detector.observe(1);
  EXPECT_EQ(detector.observe(1e30), "");
}

}  // namespace
}  // namespace lockstep
