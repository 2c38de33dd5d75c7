#include "launch/fetch/run_join.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

std::string text_of(const JoinedText& pieces) {
  std::string out;
  for (std::string_view piece : pieces) out += piece;
  return out;
}

const std::string kStart = "{\"event\":\"start\",\"time\":100.0,\"first_step\":1}\n";
const std::string kStep1 = "{\"event\":\"step\",\"time\":101.0,\"step\":1}\n";
const std::string kResume = "{\"event\":\"resume\",\"time\":200.0,\"first_step\":2}\n";
const std::string kStep2 = "{\"event\":\"step\",\"time\":201.0,\"step\":2}\n";
const std::string kAgain = "{\"event\":\"resume\",\"time\":300.0,\"first_step\":3}\n";

TEST(RunJoin, AttemptsOfTwoHostsComeInTheOrderInWhichTheyBegan) {
  const std::string a = kStart + kStep1 + kAgain, b = kResume + kStep2;
  EXPECT_EQ(text_of(join_metrics({{b}, {a}})), kStart + kStep1 + kResume + kStep2 + kAgain);
}

TEST(RunJoin, ALineThatIsNotWholeIsLeftOut) {
  EXPECT_EQ(text_of(join_metrics({{kStart + "{\"event\":\"st"}})), kStart);
  EXPECT_EQ(text_of(join_logs({{"2026-11-24 10:00:00.000 a\n2026-11"}})),
            "2026-11-24 10:00:00.000 a\n");
}

TEST(RunJoin, AnAttemptThatTwoHostsShowComesOnceAndWhole) {
  EXPECT_EQ(text_of(join_metrics({{kStart}, {kStart + kStep1}})), kStart + kStep1);
}

TEST(RunJoin, AHostWhoseClockGoesBackKeepsItsOrder) {
  const std::string back = "{\"event\":\"resume\",\"time\":50.0,\"first_step\":2}\n";
  EXPECT_EQ(text_of(join_metrics({{kStart + back}, {kResume}})), kStart + back + kResume);
}

TEST(RunJoin, LogLinesAreOrderedByTimeAcrossZones) {
  const std::string utc =
      "2026-11-24 10:00:00.500 two\n  more of two\n2026-11-24 10:00:02.000 four\n";
  const std::string later = "2026-11-24 11:00:00.000 one\n2026-11-24 11:00:01.000 three\n";
  EXPECT_EQ(text_of(join_logs({{utc, 0}, {later, 3600}})),
            "2026-11-24 11:00:00.000 one\n2026-11-24 10:00:00.500 two\n  more of two\n"
            "2026-11-24 11:00:01.000 three\n2026-11-24 10:00:02.000 four\n");
}

TEST(RunJoin, LaunchEventsThatTwoHostsHaveComeOnce) {
  const std::string first = "{\"time\":1.0,\"event\":\"start\"}\n";
  const std::string second = "{\"time\":2.0,\"event\":\"failure\"}\n";
  EXPECT_EQ(text_of(join_launch_events({{first + second}, {first}})), first + second);
}

TEST(RunJoin, EpochsHaveOneHeaderAndComeByEpochAndStep) {
  const std::string a = "epoch,step\n1,10\n2,15\n", b = "epoch,step\n2,20\n3,30\n";
  EXPECT_EQ(text_of(join_epochs({{b}, {a}})), "epoch,step\n1,10\n2,15\n2,20\n3,30\n");
}

TEST(RunJoin, FilesOfAttemptsAreOrderedByTheirBeginning) {
  const std::vector<AttemptFile> ordered =
      order_attempts({{{0, "times/attempt_1.bin", 100}, {0, "times/attempt_2.bin", 300}},
                      {{1, "times/attempt_1.bin", 200}}});
  ASSERT_EQ(ordered.size(), 3u);
  EXPECT_EQ(ordered[1].source, 1u);
  EXPECT_EQ(ordered[2].path, "times/attempt_2.bin");
}

}  // namespace
}  // namespace lockstep
