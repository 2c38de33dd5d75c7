#include "launch/processes/first_failure.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "base/error.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

RankEnd exited(int rank, int code, int at_ms, bool told = false) {
  return {rank, code << 8, Clock::time_point(milliseconds(at_ms)), told};
}
RankEnd killed(int rank, int signal, int at_ms, bool told = false) {
  return {rank, signal, Clock::time_point(milliseconds(at_ms)), told};
}

int blamed(const std::vector<RankEnd>& ends) {
  std::optional<RankEnd> failure = first_failure(ends);
  return failure ? failure->rank : -1;
}

TEST(FirstFailure, IsNoneWhenAllSucceedOrStopAsTold) {
  EXPECT_EQ(blamed({}), -1);
  EXPECT_EQ(blamed({exited(0, 0, 1), exited(1, 0, 2)}), -1);
  EXPECT_EQ(
      blamed({exited(0, 143, 1, true), killed(1, SIGTERM, 2, true), killed(2, SIGKILL, 9, true)}),
      -1);
}

TEST(FirstFailure, IsTheEarliest) {
  EXPECT_EQ(blamed({exited(0, 0, 1), exited(2, 3, 5), exited(1, 70, 6)}), 2);
  EXPECT_EQ(blamed({exited(2, 3, 5), killed(1, SIGSEGV, 6)}), 2);
}

TEST(FirstFailure, IsNotTheRankThatOnlyLostItsPeer) {
  EXPECT_EQ(blamed({exited(0, kExitMachine, 5), exited(1, kExitMachine, 5), killed(2, SIGKILL, 6)}),
            2);
  EXPECT_EQ(blamed({exited(0, kExitMachine, 5), exited(1, kExitData, 400)}), 1);
  EXPECT_EQ(blamed({exited(0, kExitMachine, 5), exited(1, 3, 7), killed(2, SIGSEGV, 9)}), 2);
  EXPECT_EQ(blamed({exited(0, kExitMachine, 5), exited(1, kExitMachine, 6)}), 0);
}

TEST(FirstFailure, ForgetsTheCascadeAfterItsTime) {
  EXPECT_EQ(blamed({exited(0, kExitMachine, 5), killed(2, SIGSEGV, 5000)}), 0);
}

TEST(FirstFailure, DoesNotTakeOurOwnSignalForTheCause) {
  EXPECT_EQ(blamed({exited(0, kExitMachine, 5), killed(2, SIGTERM, 9, true)}), 0);
  EXPECT_EQ(blamed({exited(0, kExitMachine, 5), killed(2, SIGSEGV, 9, true)}), 2);
}

TEST(FirstFailure, GivesTheRanksOwnCodeAndFourForASignal) {
  EXPECT_EQ(exit_code_for(exited(0, 5, 0)), 5);
  EXPECT_EQ(exit_code_for(killed(0, SIGKILL, 0)), kExitMachine);
}

TEST(FirstFailure, IsDescribedInWords) {
  EXPECT_EQ(describe_end(killed(0, SIGSEGV, 0)), "was killed by SIGSEGV");
  EXPECT_EQ(describe_end(exited(0, 143, 0)), "exited with code 143 (stopped by SIGTERM)");
  EXPECT_EQ(describe_end(exited(0, 1, 0)), "exited with code 1");
  EXPECT_NE(describe_end(exited(0, 3, 0)).find("input file"), std::string::npos);
  EXPECT_NE(advice_for(killed(0, SIGKILL, 0)).find("memory"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
