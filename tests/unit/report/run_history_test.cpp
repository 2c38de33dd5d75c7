#include "report/run/run_history.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>

#include "base/error.h"

namespace lockstep {
namespace {

class RunHistoryTest : public ::testing::Test {
 protected:
  RunHistory read(const std::string& text) const {
    write_file(folder_.path() / "metrics.jsonl", text);
    return read_history(folder_.path() / "metrics.jsonl");
  }
  TemporaryFolder folder_;
};

std::string step(int number, double time) {
  return fmt::format(
      R"({{"event":"step","time":{},"step":{},"epoch":0,"train/nll":2.5,"train/loss":null,"comm/scope":"group",)"
      R"("time/step_seconds":0.5,"batch/items":8}})"
      "\n",
      time, number);
}

TEST_F(RunHistoryTest, LinesOfStepsAreScanned) {
  StepRow row;
  std::string line = step(3, 10);
  line.pop_back();
  ASSERT_TRUE(scan_step(line, row));
  EXPECT_EQ(row.step, 3);
  EXPECT_EQ(row.time, 10);
  EXPECT_EQ(row.nll, 2.5);
  EXPECT_TRUE(std::isnan(row.loss));
  EXPECT_EQ(row.items, 8);
  EXPECT_FALSE(scan_step(line.substr(0, line.size() - 1), row));
  EXPECT_FALSE(scan_step(R"({"event":"end"})", row));
}

TEST_F(RunHistoryTest, AResumeRepeatsStepsAndTheLaterOnesCount) {
  const RunHistory h = read(R"({"event":"start","time":1,"first_step":1,"total_steps":9})"
                            "\n" +
                            step(1, 2) + step(2, 3) + step(3, 4) +
                            R"({"event":"resume","time":20,"first_step":2,"total_steps":9})"
                            "\n" +
                            step(2, 21) + step(3, 22) +
                            R"({"event":"end","time":23,"reason":"steps"})"
                            "\n");
  ASSERT_EQ(h.steps.size(), 3u);
  EXPECT_EQ(h.steps[1].time, 21);
  EXPECT_EQ(h.steps[1].attempt, 1);
  EXPECT_EQ(h.repeated_steps, 2);
  EXPECT_DOUBLE_EQ(h.repeated_seconds, 1);
  ASSERT_EQ(h.attempts.size(), 2u);
  EXPECT_EQ(h.attempts[0].end, "");
  EXPECT_EQ(h.attempts[1].end, "steps");
  EXPECT_DOUBLE_EQ(h.wall_seconds(), 22);
  EXPECT_TRUE(h.ended());
}

TEST_F(RunHistoryTest, ALineThatWasCutShortIsPassedOverAndABrokenOneIsNamed) {
  EXPECT_EQ(read(step(1, 1) + R"({"event":"st)").steps.size(), 1u);
  try {
    read(step(1, 1) + "nonsense\n" + step(2, 2));
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("metrics.jsonl:2"), std::string::npos);
  }
  EXPECT_TRUE(read_history(folder_.path() / "none.jsonl").attempts.empty());
}

TEST_F(RunHistoryTest, AMillionStepsAreReadInSeconds) {
  std::string text;
  for (int i = 1; i <= 200'000; ++i) text += step(i, i);
  write_file(folder_.path() / "metrics.jsonl", text);
  const std::clock_t begin = std::clock();
  EXPECT_EQ(read_history(folder_.path() / "metrics.jsonl").steps.size(), 200'000u);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 2) << "a fifth of 10 s for a million steps";  // of processor time
}

}  // namespace
}  // namespace lockstep
