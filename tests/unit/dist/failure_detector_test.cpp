#include "dist/liveness/failure_detector.h"

#include <gtest/gtest.h>

#include <cstring>

namespace lockstep {
namespace {

using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::steady_clock;
using Time = RankSeen::Time;

Time at(double seconds) {
  return Time{} + std::chrono::hours{1} +
         duration_cast<steady_clock::duration>(duration<double>(seconds));
}

// Ranks of node0, node1, ... that beat at second 0.
std::vector<RankSeen> make_ranks(int size) {
  std::vector<RankSeen> ranks(size);
  for (int r = 0; r < size; ++r) {
    ranks[r].identity.rank = r;
    std::strcpy(ranks[r].identity.host, ("node" + std::to_string(r)).c_str());
    std::strcpy(ranks[r].identity.address, ("10.0.0." + std::to_string(r)).c_str());
    ranks[r].presence = Presence::kHere;
    ranks[r].seen = at(0);
  }
  return ranks;
}

void beat_all_but(int silent, std::vector<RankSeen>& ranks, Time now) {
  for (RankSeen& r : ranks) {
    if (r.identity.rank != silent) r.seen = now;
  }
}

// Judges every 0.25 s from `from` to `to` while all beat but one.
std::optional<RankVerdict> judge_until(FailureDetector& judge, std::vector<RankSeen>& ranks,
                                       double to, int silent = -1) {
  for (double t = 0; t <= to; t += 0.25) {
    beat_all_but(silent, ranks, at(t));
    if (auto verdict = judge.judge(ranks, at(t))) return verdict;
  }
  return {};
}

TEST(FailureDetector, ARankWhoseConnectionEndedWithoutFarewellIsLost) {
  RankProgress mine;
  FailureDetector judge({}, mine);
  auto ranks = make_ranks(3);
  EXPECT_FALSE(judge_until(judge, ranks, 1));
  ranks[2].status.progress.step = 1234;
  ranks[2].status.progress.phase = Phase::kBackward;
  ranks[2].presence = Presence::kClosed;
  ranks[2].closed = at(1);
  EXPECT_FALSE(judge.judge(ranks, at(1.01)));  // others of its machine may follow
  auto verdict = judge.judge(ranks, at(1.1));
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->ranks, std::vector<int>{2});
  EXPECT_EQ(verdict->headline, "lost rank 2 on node2 (10.0.0.2): its process ended");
  EXPECT_NE(verdict->detail.find("last seen in step 1,234, backward"), std::string::npos)
      << verdict->detail;
}

TEST(FailureDetector, RanksOfOneMachineAreNamedTogether) {
  RankProgress mine;
  FailureDetector judge({}, mine);
  auto ranks = make_ranks(4);
  ranks[3].identity = ranks[2].identity;
  ranks[3].identity.rank = 3;
  for (int r : {2, 3}) {
    ranks[r].presence = Presence::kClosed;
    ranks[r].closed = at(0);
  }
  auto verdict = judge.judge(ranks, at(0.1));
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->headline, "lost ranks 2 and 3 on node2 (10.0.0.2): their processes ended");
}

TEST(FailureDetector, ASilentRankIsLostAfterTheTimeItMayTake) {
  RankProgress mine;
  FailureDetector judge({.lost_seconds = 5}, mine);
  auto ranks = make_ranks(3);
  EXPECT_FALSE(judge_until(judge, ranks, 4.9, 1));
  auto verdict = judge_until(judge, ranks, 5.5, 1);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->headline.find("lost rank 1 on node1 (10.0.0.1): no sign of life for 5."), 0u)
      << verdict->headline;
  FailureDetector patient({.lost_seconds = 0}, mine);
  ranks = make_ranks(3);
  EXPECT_FALSE(judge_until(patient, ranks, 100, 1));
}

TEST(FailureDetector, SilenceWhileTheJudgeItselfStoodStillDoesNotCount) {
  RankProgress mine;
  FailureDetector judge({.lost_seconds = 5}, mine);
  auto ranks = make_ranks(2);
  EXPECT_FALSE(judge_until(judge, ranks, 1));
  EXPECT_FALSE(judge.judge(ranks, at(60)));  // a laptop that slept, a stopped process
  EXPECT_FALSE(judge.judge(ranks, at(61)));
}

TEST(FailureDetector, ARankThatWasDoneMayGo) {
  RankProgress mine;
  FailureDetector judge({.lost_seconds = 5}, mine);
  auto ranks = make_ranks(2);
  ranks[1].presence = Presence::kDone;
  EXPECT_FALSE(judge_until(judge, ranks, 20, 1));
}

TEST(FailureDetector, ARankThatFailsForItsOwnReasonIsNamedWithIt) {
  RankProgress mine;
  FailureDetector judge({}, mine);
  auto ranks = make_ranks(3);
  ranks[1].failure = "corpus.bin: is damaged";
  ranks[1].failure_since = at(0);
  ranks[1].presence = Presence::kClosed;
  ranks[1].closed = at(0.01);
  auto verdict = judge_until(judge, ranks, 1);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->headline, "rank 1 on node1 (10.0.0.1) failed: corpus.bin: is damaged");
}

TEST(FailureDetector, SaysWhoIssuedAnotherOperation) {
  RankProgress mine, theirs;
  for (RankProgress* p : {&mine, &theirs}) p->start_operation("barrier", 0, "");
  mine.start_operation("sum", 10, "fp32");
  theirs.start_operation("sum", 20, "fp32");
  FailureDetector judge({}, mine);
  auto ranks = make_ranks(3);
  ranks[1].operations = mine.operations(32);
  ranks[2].operations = theirs.operations(32);
  auto verdict = judge.judge(ranks, at(0));
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->ranks, std::vector<int>{2});
  EXPECT_EQ(verdict->headline,
            "the ranks issue different operations: rank 2 on node2 (10.0.0.2) issued sum, 20 x "
            "fp32 (operation 2), but rank 0 on node0 (10.0.0.0) and rank 1 on node1 (10.0.0.1) "
            "issued sum, 10 x fp32 (operation 2)");
}

TEST(FailureDetector, RanksThatAreFartherAheadMayDifferFromEachOther) {
  RankProgress mine, one, other;
  for (RankProgress* p : {&mine, &one, &other}) p->start_operation("barrier", 0, "");
  one.start_operation("sum", 20, "fp32");
  other.start_operation("barrier", 0, "");
  FailureDetector judge({}, mine);
  auto ranks = make_ranks(3);
  ranks[1].operations = one.operations(32);
  ranks[2].operations = other.operations(32);
  EXPECT_FALSE(judge.judge(ranks, at(0))) << "rank 0 has some time to say what it issues";
  const auto verdict = judge.judge(ranks, at(1));
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->headline,
            "the ranks issue different operations: rank 2 on node2 (10.0.0.2) issued barrier "
            "(operation 2), but rank 1 on node1 (10.0.0.1) issued sum, 20 x fp32 (operation 2)");
}

TEST(FailureDetector, RanksThatAreFartherAheadDoNotDiffer) {
  RankProgress mine, theirs;
  mine.start_operation("barrier", 0, "");
  theirs.start_operation("barrier", 0, "");
  theirs.start_operation("sum", 20, "fp32");
  FailureDetector judge({}, mine);
  auto ranks = make_ranks(2);
  ranks[1].operations = theirs.operations(32);
  EXPECT_FALSE(judge.judge(ranks, at(0)));
}

TEST(FailureDetector, WarnsOfARankThatLivesButLetsOthersWait) {
  RankProgress mine;
  FailureDetector judge({.stall_seconds = 15}, mine);
  auto ranks = make_ranks(3);
  std::vector<double> warned;
  std::string text;
  for (double t = 0; t < 70; t += 0.5) {
    beat_all_but(-1, ranks, at(t));
    for (int r : {0, 2}) {
      ranks[r].status.progress.started = ranks[r].status.progress.waiting = 8;
      ranks[r].status.progress.waiting_seconds = t;
    }
    ranks[1].status.progress.started = 7;
    ranks[1].status.progress.phase = Phase::kForward;
    if (auto warning = judge.warning(ranks, at(t))) {
      warned.push_back(t);
      text = *warning;
    }
  }
  EXPECT_EQ(warned, (std::vector<double>{15, 30, 60}));
  EXPECT_EQ(text.find("rank 1 on node1 (10.0.0.1) hangs or is slow: 2 ranks wait for it for 60 s"),
            0u)
      << text;
}

TEST(FailureDetector, WhatOnceTookLongIsNoStallTheNextTime) {
  RankProgress mine;
  FailureDetector judge({.stall_seconds = 10}, mine);
  auto ranks = make_ranks(2);
  auto warnings_in = [&](uint64_t operation, double seconds) {
    int warnings = 0;
    ranks[0].status.progress.waiting = operation;
    ranks[1].status.progress.started = operation - 1;
    for (double t = 0; t < seconds; t += 0.5) {
      ranks[0].status.progress.waiting_seconds = t;
      beat_all_but(-1, ranks, at(t));
      warnings += judge.warning(ranks, at(t)) ? 1 : 0;
    }
    ranks[0].status.progress.waiting = 0;  // it came
    ranks[1].status.progress.started = operation;
    judge.warning(ranks, at(seconds));
    return warnings;
  };
  ranks[1].status.progress.phase = Phase::kForward;
  EXPECT_EQ(warnings_in(5, 15), 1);
  EXPECT_EQ(warnings_in(6, 30), 0);  // up to three times as long as it took before
  ranks[1].status.progress.phase = Phase::kCheckpoint;
  EXPECT_EQ(warnings_in(7, 60), 0);  // may take long
}

TEST(FailureDetector, AnOperationThatFailedIsExplainedByTheRankThatDidNotCome) {
  RankProgress mine;
  FailureDetector judge({}, mine);
  auto ranks = make_ranks(2);
  ranks[0].trouble = "timed out after 1 s";
  ranks[0].trouble_since = at(0);
  ranks[0].status.progress.waiting = 4;
  ranks[0].status.progress.waiting_seconds = 1;
  ranks[1].status.progress.started = 3;
  auto verdict = judge_until(judge, ranks, 2);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->ranks, std::vector<int>{1});
  EXPECT_EQ(verdict->headline.find("rank 1 on node1 (10.0.0.1) hangs: others wait for it for 1."),
            0u)
      << verdict->headline;
}

TEST(FailureDetector, LeaderLostSaysWhetherItEndedOrIsSilent) {
  auto ranks = make_ranks(2);
  EXPECT_EQ(leader_lost(ranks, true, at(1)).headline,
            "lost rank 0 on node0 (10.0.0.0): its process ended");
  EXPECT_EQ(leader_lost(ranks, false, at(5.1)).headline,
            "lost rank 0 on node0 (10.0.0.0): no sign of life for 5.1 s");
}

}  // namespace
}  // namespace lockstep
