// OneCycleLR of the torch wheel, step by step.
#include "optim/schedules/one_cycle.h"

#include <gtest/gtest.h>

#include <sstream>

#include "support/python.h"

namespace lockstep {
namespace {

TEST(OneCycle, IsTorchsAtEveryStep) {
  if (!python_has("torch")) GTEST_SKIP() << "no torch in " << LOCKSTEP_PYTHON;
  struct Case {
    int64_t steps;
    double start;
    const char* anneal;
    bool three_phase;
  };
  for (const Case& c : {Case{97, 0.3, "cos", false}, Case{60, 0.2, "linear", true}}) {
    PythonResult torch = run_parity_script(
        "one_cycle_rates.py",
        fmt::format("{} {} {} {}", c.steps, c.start, c.anneal, c.three_phase ? "yes" : "no"));
    ASSERT_EQ(torch.status, 0) << torch.errors;
    ScheduleConfig config;
    config.name = "one_cycle";
    config.pct_start = c.start;
    config.anneal_strategy = c.anneal;
    config.three_phase = c.three_phase;
    const ScheduleContext context{.total_steps = c.steps};
    std::istringstream lines(torch.output);
    double lr = 0, momentum = 0;
    int64_t step = 0;
    while (lines >> lr >> momentum) {
      ++step;
      EXPECT_NEAR(0.5 * schedule_value(step, config, context), lr, 1e-12) << "step " << step;
      EXPECT_NEAR(*schedule_momentum(step, config, context), momentum, 1e-12) << "step " << step;
    }
    EXPECT_EQ(step, c.steps);
  }
}

}  // namespace
}  // namespace lockstep
