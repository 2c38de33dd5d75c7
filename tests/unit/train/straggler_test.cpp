#include "train/listeners/straggler.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace lockstep {
namespace {

using std::chrono::seconds;

struct RankBusy {
  double compute = 0.1, data = 0;  // of a step
  double cores = 1, machine_share = 0.5;
};

// `count` seconds of ten steps each, in which every rank waits for the slowest.
void run_seconds(StragglerWatch& watch, const std::vector<RankBusy>& times, int count,
                 std::vector<RankSeen>& ranks, int& now) {
  ranks.resize(times.size());
  for (int i = 0; i < count; ++i, ++now) {
    double longest = 0;
    for (const RankBusy& t : times) longest = std::max(longest, t.compute + t.data);
    for (std::size_t r = 0; r < times.size(); ++r) {
      StepSums& sums = ranks[r].status.progress.sums;
      sums.steps += 10;
      sums.targets += 1000;
      sums.compute_seconds += 10 * times[r].compute;
      sums.data_seconds += 10 * times[r].data;
      sums.wait_seconds += 10 * (longest - times[r].compute - times[r].data);
      ranks[r].identity.rank = static_cast<int>(r);
      std::snprintf(ranks[r].identity.host, sizeof(ranks[r].identity.host), "host%zu", r);
      ranks[r].status.usage.process_cores = times[r].cores;
      ranks[r].status.usage.machine_share = times[r].machine_share;
      ranks[r].status.usage.cores = 2;
    }
    watch.add(ranks, RankSeen::Time{} + std::chrono::hours{1} + seconds{now});
  }
}

TEST(Straggler, NamesTheRankThatIsBusyWhileOthersWait) {
  StragglerWatch watch;
  std::vector<RankSeen> ranks;
  int now = 0;
  run_seconds(watch, {{}, {}, {.compute = 0.15}}, 10, ranks, now);
  auto slow = watch.slowest();
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->rank, 2);
  EXPECT_NEAR(slow->factor, 1.5, 1e-9);
  EXPECT_EQ(slow->guess, "its machine computes more slowly");
  StepShares shares = watch.shares()[0];
  EXPECT_NEAR(shares.step_seconds, 0.15, 1e-9);
  EXPECT_NEAR(shares.wait_seconds, 0.05, 1e-9);
  EXPECT_NEAR(shares.targets_per_second, 1000, 1e-6);
}

TEST(Straggler, GuessesThatOthersTakeItsCoresOrThatItsDataIsLate) {
  StragglerWatch watch;
  std::vector<RankSeen> ranks;
  int now = 0;
  run_seconds(watch, {{}, {.compute = 0.2, .cores = 0.6, .machine_share = 1}}, 10, ranks, now);
  ASSERT_TRUE(watch.slowest());
  EXPECT_EQ(watch.slowest()->guess, "other programs take its cores: it gets 0.6 of 2");
  StragglerWatch other;
  ranks.clear();
  run_seconds(other, {{}, {.data = 0.1}}, 10, ranks, now);
  ASSERT_TRUE(other.slowest());
  EXPECT_EQ(other.slowest()->guess, "it waits for its data: look at its disk");
}

TEST(Straggler, SmallDifferencesAndSingleRanksAreNone) {
  StragglerWatch watch;
  std::vector<RankSeen> ranks;
  int now = 0;
  run_seconds(watch, {{}, {.compute = 0.11}}, 10, ranks, now);
  EXPECT_FALSE(watch.slowest());
  StragglerWatch alone;
  ranks.clear();
  run_seconds(alone, {{}}, 10, ranks, now);
  EXPECT_FALSE(alone.slowest());
}

TEST(Straggler, IsToldOnceWhenItLasts) {
  StragglerWatch watch;
  std::vector<RankSeen> ranks;
  int now = 0, warnings = 0;
  for (int i = 0; i < 120; ++i) {
    run_seconds(watch, {{}, {.compute = 0.2}}, 1, ranks, now);
    auto slow = watch.lasting(RankSeen::Time{} + std::chrono::hours{1} + seconds{now});
    if (!slow) continue;
    ++warnings;
    EXPECT_GE(i, 29);
    EXPECT_EQ(slow->rank, 1);
    EXPECT_EQ(slow->host, "host1");
    EXPECT_NEAR(slow->factor, 2, 1e-9);
  }
  EXPECT_EQ(warnings, 1);
}

TEST(Straggler, ForgetsWhatIsLongAgo) {
  StragglerWatch watch;
  std::vector<RankSeen> ranks;
  int now = 0;
  run_seconds(watch, {{}, {.compute = 0.2}}, 30, ranks, now);
  EXPECT_TRUE(watch.slowest());
  run_seconds(watch, {{}, {}}, 30, ranks, now);
  EXPECT_FALSE(watch.slowest());
}

}  // namespace
}  // namespace lockstep
