#include "optim/schedules/schedules.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep {
namespace {

double value(const char* name, int64_t step, int64_t warmup, const ScheduleContext& context) {
  ScheduleConfig config;
  config.name = name;
  config.warmup_steps = warmup;
  return schedule_value(step, config, context);
}

// OpenSeq2Seq's base model: 2.0 * 512^-0.5 * min(step^-0.5, step * 8000^-1.5) peaks at 9.88e-4.
TEST(Schedules, NoamPeaksWhereTheFormulaSays) {
  ScheduleContext context{.width = 512, .total_steps = 100000};
  EXPECT_NEAR(2 * value("noam", 8000, 8000, context), 9.88e-4, 1e-6);
  EXPECT_NEAR(value("noam", 4000, 8000, context), 0.5 * value("noam", 8000, 8000, context), 1e-9);
  EXPECT_NEAR(value("noam", 32000, 8000, context), 0.5 * value("noam", 8000, 8000, context), 1e-9);
}

TEST(Schedules, InverseSqrtHasNoamsShapeWithPeakOne) {
  ScheduleContext context{.width = 512, .total_steps = 100000};
  double peak = value("noam", 500, 500, context);
  for (int64_t step : {1, 250, 500, 2000}) {
    EXPECT_NEAR(value("inverse_sqrt", step, 500, context), value("noam", step, 500, context) / peak,
                1e-9);
  }
}

TEST(Schedules, LinearAndCosineEndAtTheirFloor) {
  ScheduleContext context{.width = 1, .total_steps = 1000};
  EXPECT_NEAR(value("linear", 1000, 100, context), 0, 1e-12);
  EXPECT_NEAR(value("linear", 550, 100, context), 0.5, 1e-12);
  EXPECT_NEAR(value("cosine", 550, 100, context), 0.5, 1e-12);
  EXPECT_NEAR(value("cosine", 1000, 100, context), 0, 1e-12);
  EXPECT_NEAR(value("cosine", 2000, 100, context), 0, 1e-12);
  EXPECT_NEAR(value("constant", 50, 100, context), 0.5, 1e-12);
  EXPECT_EQ(value("constant", 1, 0, context), 1);
}

// get_linear_schedule_with_warmup counts from 0: the first step has (steps - 0) / steps, and with a
// warm-up nothing.
TEST(Schedules, HfLinearIsThatOfTransformers) {
  const ScheduleContext context{.total_steps = 20};
  ScheduleConfig config;
  config.name = "hf_linear";
  EXPECT_DOUBLE_EQ(schedule_value(1, config, context), 1);
  EXPECT_DOUBLE_EQ(schedule_value(20, config, context), 1.0 / 20);
  EXPECT_DOUBLE_EQ(schedule_value(21, config, context), 0);
  config.warmup_ratio = 0.21;  // ceil(4.2) steps
  EXPECT_DOUBLE_EQ(schedule_value(1, config, context), 0);
  EXPECT_DOUBLE_EQ(schedule_value(3, config, context), 2.0 / 5);
  EXPECT_DOUBLE_EQ(schedule_value(6, config, context), 1);
  EXPECT_DOUBLE_EQ(schedule_value(11, config, context), 10.0 / 15);
  config.num_warmup_steps = 4;  // goes before the ratio
  EXPECT_DOUBLE_EQ(schedule_value(3, config, context), 0.5);
  EXPECT_DOUBLE_EQ(schedule_value(20, config, context), 1.0 / 16);
}

TEST(Schedules, NoamKeepsBelowMaxLr) {
  ScheduleContext context{.width = 512, .total_steps = 100000, .lr = 2};
  ScheduleConfig config;
  config.warmup_steps = 8000;
  config.max_lr = 5e-4;
  EXPECT_EQ(2 * schedule_value(8000, config, context), 5e-4);
  EXPECT_LT(2 * schedule_value(100, config, context), 5e-4);
}

TEST(Schedules, FloorHoldsAfterTheWarmUp) {
  ScheduleContext context{.width = 512, .total_steps = 1000};
  for (const char* name : {"noam", "inverse_sqrt", "cosine", "linear"}) {
    ScheduleConfig config;
    config.name = name;
    config.warmup_steps = 10;
    config.floor = 0.5;
    const double peak = schedule_value(10, config, context);
    EXPECT_NEAR(schedule_value(1000, config, context), 0.5 * peak, 1e-12) << name;
    EXPECT_NEAR(schedule_value(1, config, context), 0.1 * peak, 1e-12) << name;
  }
}

// OpenSeq2Seq's formulas at its global_step, which is 0 in our first step.
TEST(Schedules, PiecewiseChangesAfterItsBoundaries) {
  ScheduleConfig config;
  config.name = "piecewise";
  config.boundaries = {10, 20};
  config.values = {0.1, 0.01};
  auto at = [&](int64_t global_step) { return schedule_value(global_step + 1, config, {}); };
  EXPECT_EQ(at(0), 1);
  EXPECT_EQ(at(10), 1);  // tf.train.piecewise_constant: x <= boundary
  EXPECT_EQ(at(11), 0.1);
  EXPECT_EQ(at(20), 0.1);
  EXPECT_EQ(at(21), 0.01);
  config.values = {0.1};
  EXPECT_EQ(config.check(), "expected as many values as boundaries (2), got 1");
  config.boundaries = {20};
  EXPECT_EQ(config.check(), "");
}

TEST(Schedules, ExponentialDecayIsContinuousOrAStaircase) {
  ScheduleConfig config;
  config.name = "exp";
  config.decay_steps = 100;
  config.decay_rate = 0.5;
  config.begin_decay_at = 1000;
  ScheduleContext context{.total_steps = 5000, .lr = 0.1};
  auto at = [&](int64_t global_step) { return schedule_value(global_step + 1, config, context); };
  EXPECT_EQ(at(999), 1);
  EXPECT_EQ(at(1000), 1);
  EXPECT_NEAR(at(1050), std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(at(1300), 0.125, 1e-12);
  config.staircase = true;
  EXPECT_EQ(at(1099), 1);
  EXPECT_EQ(at(1100), 0.5);
  config.min_lr = 0.03;  // of 0.1
  EXPECT_NEAR(at(4000), 0.3, 1e-12);
}

TEST(Schedules, PolynomialDecayEndsAtMinLr) {
  ScheduleConfig config;
  config.name = "poly";
  config.warmup_steps = 0;
  config.decay_steps = 1000;
  config.power = 2;
  config.min_lr = 0.004;
  ScheduleContext context{.total_steps = 5000, .lr = 0.04};
  auto at = [&](int64_t global_step) { return schedule_value(global_step + 1, config, context); };
  EXPECT_EQ(at(0), 1);
  EXPECT_NEAR(at(500), 0.9 * 0.25 + 0.1, 1e-12);
  EXPECT_NEAR(at(1000), 0.1, 1e-12);
  EXPECT_NEAR(at(4000), 0.1, 1e-12);
  config.warmup_steps = 200;
  EXPECT_NEAR(at(99), 0.5, 1e-12);
  EXPECT_NEAR(at(700), 0.9 * 0.25 + 0.1, 1e-12);  // the decay waits for the warm-up
  config.decay_steps = 0;                         // to the end of the run
  EXPECT_NEAR(at(2600), 0.9 * 0.25 + 0.1, 1e-12);
}

TEST(Schedules, InversePolynomialDecayReachesMinLrAfterItsSteps) {
  ScheduleConfig config;
  config.name = "inv_poly";
  config.warmup_steps = 0;
  config.decay_steps = 1000;
  config.power = 0.5;
  config.min_lr = 1e-3;
  ScheduleContext context{.total_steps = 5000, .lr = 1e-2};
  auto at = [&](int64_t global_step) { return schedule_value(global_step + 1, config, context); };
  EXPECT_EQ(at(0), 1);
  EXPECT_NEAR(at(500), 1 / std::sqrt(1 + 99 * 0.5), 1e-12);  // rate (10^2 - 1) / 1000
  EXPECT_NEAR(at(1000), 0.1, 1e-12);
  EXPECT_NEAR(at(4000), 0.1, 1e-12);
}

TEST(Schedules, OneCycleEndsItsPhasesWhereItShould) {
  ScheduleConfig config;
  config.name = "one_cycle";
  ScheduleContext context{.total_steps = 100};
  auto momentum = [&](int64_t step) { return *schedule_momentum(step, config, context); };
  EXPECT_NEAR(schedule_value(1, config, context), 1.0 / 25, 1e-12);
  EXPECT_NEAR(schedule_value(30, config, context), 1, 1e-12);
  EXPECT_NEAR(schedule_value(100, config, context), 1.0 / 25 / 1e4, 1e-12);
  EXPECT_NEAR(momentum(1), 0.95, 1e-12);
  EXPECT_NEAR(momentum(30), 0.85, 1e-12);
  EXPECT_NEAR(momentum(100), 0.95, 1e-12);
  config.cycle_momentum = false;
  EXPECT_FALSE(schedule_momentum(30, config, context));
}

// A key that the chosen schedule does not read is an unknown key.
TEST(Schedules, DescribeOnlyTheirOwnKeys) {
  ScheduleConfig config;
  config.name = "exp";
  HelpWriter help;
  config.describe(help);
  EXPECT_NE(help.text().find("decay_rate"), std::string::npos);
  EXPECT_EQ(help.text().find("warmup_steps"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
