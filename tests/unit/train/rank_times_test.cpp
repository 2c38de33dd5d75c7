#include "train/records/rank_times.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "dist/account/progress.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

AccountedStep step_of(double busy, float wait) {
  return {.step = 5,
          .begin = 1000,
          .times = {.data = 1, .forward = 2, .backward = 3, .wait = wait, .sent_bytes = 8},
          .busy = busy};
}

// As the sum over the ranks leaves it.
std::vector<double> sum_of(const std::vector<AccountedStep>& steps) {
  std::vector<double> sums(steps.size() * kRankTimesFields);
  for (std::size_t rank = 0; rank < steps.size(); ++rank) {
    put_times(steps[rank], std::span(sums).subspan(rank * kRankTimesFields, kRankTimesFields));
  }
  return sums;
}

TEST(RankTimes, ComeThroughTheSumAsTheyWere) {
  const std::vector<RankTimes> times = take_times(sum_of({step_of(6, 0.5F), step_of(6, 0.25F)}));
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].forward, 2);
  EXPECT_EQ(times[1].backward, 3);
  EXPECT_EQ(times[0].wait, 0.5F);
  EXPECT_EQ(times[1].wait, 0.25F);
  EXPECT_EQ(times[1].sent_bytes, 8);
  EXPECT_EQ(times[0].peers, 0) << "both began to wait together";
}

TEST(RankTimes, WaitingForTheLastRankIsNotTheNetworks) {
  const std::vector<RankTimes> times =
      take_times(sum_of({step_of(6, 2.5F), step_of(8, 0.5F), step_of(7.5, 0.25F)}));
  EXPECT_FLOAT_EQ(times[0].peers, 2);
  EXPECT_EQ(times[1].peers, 0);
  EXPECT_FLOAT_EQ(times[2].peers, 0.25F) << "no more than it waited";
}

TEST(RankTimes, RanksThatTookNoPartAndFirstStepsHaveZeros) {
  const std::vector<RankTimes> times = take_times(sum_of({step_of(6, 2), {}, step_of(0, 3)}));
  EXPECT_EQ(times[1].wait, 0);
  EXPECT_EQ(times[1].peers, 0);
  EXPECT_EQ(times[2].peers, 0);
  for (const RankTimes& t : times) EXPECT_FALSE(std::isnan(t.peers));
}

// Three steps of a loop as the trainer's, in which rank 1 computes 40 ms longer.
TEST(RankTimes, ASlowRankShowsInItsOwnComputingAndInWhatTheOtherWaits) {
  expect_all_well(run_ranks(2, [](World& world) {
    RankProgress& progress = world.progress();
    const auto place = static_cast<std::size_t>(world.rank()) * kRankTimesFields;
    std::vector<RankTimes> times;
    for (int64_t step = 1; step <= 3; ++step) {
      progress.begin_step(step, 0);
      progress.enter(Phase::kForward);
      std::this_thread::sleep_for(std::chrono::milliseconds{world.rank() == 1 ? 50 : 10});
      std::vector<double> sums(2 * kRankTimesFields);
      put_times(progress.account().ended(), std::span(sums).subspan(place, kRankTimesFields));
      progress.enter(Phase::kWait);
      world.start_all_reduce_sum(std::span(sums), "figures of a step")();
      progress.enter(Phase::kOptimizer);
      times = take_times(sums);
    }
    EXPECT_GE(times[1].forward, 0.05F);
    EXPECT_LT(times[0].forward, 0.04F);
    EXPECT_GT(times[0].wait, 0.02F);
    EXPECT_GT(times[0].peers, 0.02F);
    EXPECT_NEAR(times[0].peers, times[1].forward - times[0].forward, 0.01F);
    EXPECT_LT(times[1].peers, 0.01F);
  }));
}

}  // namespace
}  // namespace lockstep
