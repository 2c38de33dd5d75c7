// A report on very many steps.
#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>

#include "report/answers/report_page.h"
#include "report/answers/report_text.h"
#include "report/timeline/run_timeline.h"
#include "support/invented_run.h"
#include "support/step_times.h"

namespace lockstep {
namespace {

// Of the processor: other programs that share it are not in it.
double seconds_since(std::clock_t start) {
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

void write_run(const fs::path& run, int64_t steps) {
  write_invented_run(run, metrics_lines({.last = steps, .total = steps}));
  write_times(run, {.last = steps, .change = [](int64_t step, int, RankTimes& t) {
                      t.forward += 1e-6F * static_cast<float>(step % 1000);
                      if (step % 997 == 0) t.wait += 0.2F;
                    }});
}

void report_and_trace(int64_t steps, double limit) {
  TemporaryFolder folder;
  const fs::path run = folder.path() / "long";
  write_run(run, steps);
  std::clock_t start = std::clock();
  const Report report = make_report({run}, {});
  const std::string page = report_page(report);
  const double reported = seconds_since(start);
  EXPECT_LT(page.size(), 3'000'000u);
  EXPECT_LT(reported, limit);
  start = std::clock();
  const Timeline timeline = make_timeline(run, {});
  const double traced = seconds_since(start);
  EXPECT_LT(timeline.text.size(), 30'000'000u);
  EXPECT_LT(traced, limit);
  std::printf("[ %ld steps: report %.2f s, %.1f MB; timeline %.2f s, %.1f MB ]\n",
              static_cast<long>(steps), reported, static_cast<double>(page.size()) / 1e6, traced,
              static_cast<double>(timeline.text.size()) / 1e6);
}

TEST(LongRuns, AFifthOfAMillionStepsIsReportedInAFifthOfTheTime) {
  report_and_trace(200'000, 4);  // twice what a fifth of 10 s is: other work shares the machine
}

TEST(SlowLongRuns, AMillionStepsAreReportedInTenSeconds) { report_and_trace(1'000'000, 10); }

}  // namespace
}  // namespace lockstep
