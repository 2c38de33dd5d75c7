#include "report/run/analysis_steps.h"

#include <gtest/gtest.h>

#include <map>

namespace lockstep {
namespace {

// 100 steps of 1 s (0.7 compute, 0.2 wait, 0.1 data) from time 0, the start at -5.
RunHistory steady() {
  RunHistory out;
  out.attempts.push_back({.began = -5, .ended = 100, .first_step = 1, .last_step = 100});
  for (int i = 1; i <= 100; ++i) {
    StepRow row;
    row.step = i;
    row.time = i;
    row.seconds = 1;
    row.compute = 0.7;
    row.wait = 0.2;
    row.data = 0.1;
    row.targets = 1000;
    out.steps.push_back(row);
  }
  return out;
}

std::map<std::string, double> by_name(const std::vector<TimePart>& parts) {
  std::map<std::string, double> out;
  for (const TimePart& part : parts) out[part.name] = part.seconds;
  return out;
}

TEST(AnalysisSteps, PartsOfTheTimeAddUpToTheWhole) {
  RunHistory history = steady();
  history.evaluation_seconds = 10;
  history.repeated_seconds = 4;
  history.attempts.back().ended = 120;
  const auto parts = by_name(time_parts(history));
  EXPECT_NEAR(parts.at("compute"), 70, 1e-9);
  EXPECT_NEAR(parts.at("wait"), 20, 1e-9);
  EXPECT_NEAR(parts.at("data"), 10, 1e-9);
  EXPECT_NEAR(parts.at("start"), 5, 1e-9);
  EXPECT_NEAR(parts.at("evaluations"), 10, 1e-9);
  EXPECT_NEAR(parts.at("repeated"), 4, 1e-9);
  double sum = 0;
  for (const auto& [name, seconds] : parts) sum += seconds;
  EXPECT_NEAR(sum, history.wall_seconds(), 1e-9);
  EXPECT_FALSE(parts.contains("checkpoints"));
}

TEST(AnalysisSteps, MeasuredPhasesStandInPlaceOfTheStepsThatTheyCover) {
  RunHistory history = steady();
  const MeasuredSteps measured{.covers = [](int64_t step) { return step > 40; },
                               .parts = {{"forward", "", 20}, {"backward", "", 38}}};
  const auto parts = by_name(time_parts(history, measured));
  EXPECT_NEAR(parts.at("forward"), 20, 1e-9);
  EXPECT_NEAR(parts.at("steps without phases"), 40, 1e-9);
  EXPECT_NEAR(parts.at("other"), 2, 1e-9) << "what no phase has of 60 s";
  EXPECT_FALSE(parts.contains("compute"));
  EXPECT_FALSE(parts.contains("wait"));
}

TEST(AnalysisSteps, TimeBetweenAttemptsCountsAsInterrupted) {
  RunHistory history = steady();
  history.attempts.push_back({.began = 160, .ended = 160, .first_step = 101, .last_step = 100});
  EXPECT_NEAR(by_name(time_parts(history)).at("interrupted"), 60, 1e-9);
}

TEST(AnalysisSteps, StepsThatWarmUpAreNotInTheTimes) {
  RunHistory history = steady();
  history.steps[0].seconds = 50;
  const StepDurations times = step_durations(history);
  EXPECT_EQ(times.count, 97u);
  EXPECT_DOUBLE_EQ(times.mean, 1);
  EXPECT_DOUBLE_EQ(times.longest, 1);
}

TEST(AnalysisSteps, EverySlowStepHasItsCause) {
  RunHistory history = steady();
  auto slow = [&](int step) -> StepRow& {
    StepRow& row = history.steps[static_cast<std::size_t>(step - 1)];
    row.seconds = 3;
    return row;
  };
  slow(1);
  slow(20).data = 2.1;
  slow(40).wait = 2.2;
  slow(61).compute = 2.7;
  slow(80).compute = 2.7;
  slow(90).targets = 3000;
  history.evaluations.push_back({.step = 60, .metrics = {}});
  const Outliers out = find_outliers(history);
  ASSERT_EQ(out.steps.size(), 6u);
  EXPECT_EQ(out.steps[0].cause, "first steps of an attempt");
  EXPECT_EQ(out.steps[1].cause, "waiting for data");
  EXPECT_EQ(out.steps[2].cause, "waiting for other ranks or the network");
  EXPECT_EQ(out.steps[3].cause, "right after an evaluation or checkpoint");
  EXPECT_EQ(out.steps[4].cause, "computing took longer");
  EXPECT_EQ(out.steps[5].cause, "larger batch");
  EXPECT_DOUBLE_EQ(out.steps[1].excess, 2);
  EXPECT_EQ(out.causes.size(), 6u);
}

TEST(AnalysisSteps, EvenStepsHaveNoOutliers) {
  EXPECT_TRUE(find_outliers(steady()).steps.empty());
  EXPECT_TRUE(find_outliers(RunHistory{}).steps.empty());
}

}  // namespace
}  // namespace lockstep
