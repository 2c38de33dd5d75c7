#include "optim/schedules.h"

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

}  // namespace
}  // namespace lockstep
