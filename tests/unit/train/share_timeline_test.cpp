#include "train/parts/share_timeline.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep {
namespace {

const RankShares kEqual = equal_shares(2, 1), kUnequal = {{1500, 1}, {500, 1}},
                 kMore = {{1500, 1}, {500, 2}}, kAlone = equal_shares(1, 1);

ShareDecision decided(BatchPlace from, const RankShares& shares) {
  return {.from = from, .step = 7, .shares = shares, .accumulate = 1, .why = "of \"tests\""};
}

TEST(ShareTimeline, DecisionsHoldFromTheirBatchOn) {
  ShareTimeline timeline(kEqual);
  timeline.add(decided({1, 5}, kUnequal));
  EXPECT_EQ(timeline.at({0, 0}), kEqual);
  EXPECT_EQ(timeline.at({1, 4}), kEqual);
  EXPECT_EQ(timeline.at({1, 5}), kUnequal);
  EXPECT_EQ(timeline.at({7, 0}), kUnequal);
  EXPECT_TRUE(timeline.has_after({0, 99}));
  EXPECT_FALSE(timeline.has_after({1, 5}));
}

TEST(ShareTimeline, ADecisionReplacesThoseThatBeginLater) {
  ShareTimeline timeline(kEqual);
  timeline.add(decided({1, 5}, kUnequal));
  timeline.add(decided({1, 2}, kMore));
  EXPECT_EQ(timeline.at({3, 0}), kMore);
  EXPECT_EQ(timeline.from({1, 3}).size(), 1u);
}

TEST(ShareTimeline, TakesOverWhatHoldsAndWhatFollows) {
  const std::vector<ShareDecision> read = {decided({0, 0}, kEqual), decided({0, 8}, kUnequal),
                                           decided({1, 2}, kMore)};
  ShareTimeline timeline(kEqual);
  EXPECT_TRUE(timeline.take_over(read, {0, 5}, 2));
  EXPECT_EQ(timeline.at({0, 7}), kEqual);
  EXPECT_EQ(timeline.at({0, 8}), kUnequal);
  EXPECT_EQ(timeline.at({1, 2}), kMore);
  EXPECT_TRUE(timeline.has_after({0, 5}));
}

TEST(ShareTimeline, PassesOverDecisionsOfOtherRanks) {
  // Two ranks, then one from (0, 5) on: another run of two from there does not go on with them.
  const std::vector<ShareDecision> read = {decided({0, 0}, kUnequal), decided({0, 5}, kAlone)};
  ShareTimeline timeline(kEqual);
  EXPECT_FALSE(timeline.take_over(read, {0, 5}, 2));
  EXPECT_EQ(timeline.at({0, 5}), kEqual);
  // From an earlier checkpoint, the two do, past the place where the one began.
  EXPECT_TRUE(timeline.take_over(read, {0, 4}, 2));
  EXPECT_EQ(timeline.at({0, 6}), kUnequal);
  EXPECT_FALSE(timeline.has_after({0, 4}));
  EXPECT_FALSE(ShareTimeline(kEqual).take_over({}, {0, 0}, 2));
}

TEST(ShareDecision, IsALine) {
  ShareDecision decision = decided({2, 9}, kMore);
  decision.seconds = {0.25, 1.0 / 3};
  const ShareDecision read = decision_from_line(to_line(decision), "shares.jsonl");
  EXPECT_EQ(read.from, decision.from);
  EXPECT_EQ(read.step, 7);
  EXPECT_EQ(read.shares, kMore);
  EXPECT_EQ(read.accumulate, 1);
  EXPECT_EQ(read.seconds, decision.seconds);
  EXPECT_EQ(read.why, decision.why);
  for (const char* wrong : {"{", "{}", "[]", "12"}) {
    EXPECT_THROW(decision_from_line(wrong, "shares.jsonl"), DataError) << wrong;
  }
  decision.shares[0].weight = 0;
  EXPECT_THROW(decision_from_line(to_line(decision), "shares.jsonl"), DataError);
}

}  // namespace
}  // namespace lockstep
