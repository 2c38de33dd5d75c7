#include "report/run/run_times.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/step_times.h"

namespace lockstep {
namespace {

class RunTimesTest : public ::testing::Test {
 protected:
  const fs::path& run() const { return folder_.path(); }
  RunTimes read() const {
    RunFacts facts;
    facts.folder = run();
    facts.live =
        nlohmann::json::parse(R"({"ranks": [{"rank": 0, "host": "a"}, {"rank": 1, "host": "b"}]})");
    auto out = read_run_times(facts);
    EXPECT_TRUE(out.has_value());
    return out.value_or(RunTimes{});
  }
  TemporaryFolder folder_;
};

TEST_F(RunTimesTest, AddUpWhatEveryRankDid) {
  write_times(run(), {.last = 1000, .change = [](int64_t, int rank, RankTimes& t) {
                        if (rank == 1) t.peers = 0.004F;
                      }});
  const RunTimes times = read();
  ASSERT_EQ(times.ranks(), 2);
  EXPECT_EQ(times.steps(), 1000);
  EXPECT_NEAR(times.total[0].forward, 30, 1e-3);
  EXPECT_NEAR(times.total[0].step(), 100, 1e-2);
  EXPECT_NEAR(times.steady[1].exchange, 0.006, 1e-6);
  EXPECT_NEAR(times.steady[1].peers, 0.004, 1e-6);
  EXPECT_NEAR(times.usual[0].backward, 0.05, 1e-6);
  EXPECT_EQ(times.steady[0].steps, 997);
  EXPECT_EQ(times.rank_name(1), "rank 1 on b");
  EXPECT_EQ(times.rank_name(7), "rank 7");
  EXPECT_TRUE(times.covers(1));
  EXPECT_TRUE(times.covers(1000));
  EXPECT_FALSE(times.covers(0));
  EXPECT_FALSE(times.covers(1001));
  ASSERT_LE(times.bins.size(), 200);
  int64_t next = 1;
  for (const TimesBin& bin : times.bins) {
    EXPECT_EQ(bin.first, next);
    EXPECT_EQ(bin.ranks[1].steps, bin.last - bin.first + 1);
    next = bin.last + 1;
  }
  EXPECT_EQ(next, 1001);
}

TEST_F(RunTimesTest, OfRepeatedStepsTheLaterCount) {
  write_times(run(), {.last = 50, .begin = 1000});
  write_times(run(), {.first = 41, .last = 60, .begin = 2000});
  write_times(run(), {.first = 71, .last = 80, .begin = 3000});  // 61 to 70 were lost
  const RunTimes times = read();
  EXPECT_EQ(times.steps(), 70);
  ASSERT_EQ(times.covered.size(), 2);
  EXPECT_EQ(times.covered[0], std::make_pair(int64_t{1}, int64_t{60}));
  EXPECT_EQ(times.covered[1], std::make_pair(int64_t{71}, int64_t{80}));
  EXPECT_FALSE(times.covers(65));
  std::vector<double> begins;
  for_each_counted_step(run() / "times", [&](const StepTimes& step) {
    if (step.step == 45) begins.push_back(step.begin);
  });
  ASSERT_EQ(begins.size(), 1);
  EXPECT_GT(begins[0], 2000);
}

TEST_F(RunTimesTest, ARunWithoutThemHasNone) {
  RunFacts facts;
  facts.folder = run();
  EXPECT_FALSE(read_run_times(facts).has_value());
  fs::create_directories(run() / "times");
  write_file(run() / "times" / "attempt_1.bin", "");
  EXPECT_FALSE(read_run_times(facts).has_value());
  write_file(run() / "times" / "attempt_1.bin", "no table at all");
  EXPECT_ERROR(read_run_times(facts), DataError, "attempt_1.bin");
}

TEST_F(RunTimesTest, ASlowRankIsNamedWithItsHostAndPhase) {
  write_times(run(), {.change = [](int64_t, int rank, RankTimes& t) {
                if (rank == 1) t.backward = 0.08F;
              }});
  const auto slow = find_slow_rank(read());
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->rank, 1);
  EXPECT_TRUE(slow->whole_run);
  EXPECT_NEAR(slow->factor, 0.12 / 0.09, 1e-3);
  EXPECT_EQ(slow->because, "backward");
  EXPECT_EQ(describe(*slow, read()),
            "rank 1 on b is 1.33 times as slow as the others, most of all in backward");
}

// As much slower, but a step is almost all network: nobody would gain by a faster rank.
TEST_F(RunTimesTest, ASlowRankThatTheNetworkHidesIsNone) {
  write_times(run(), {.change = [](int64_t, int rank, RankTimes& t) {
                if (rank == 1) t.backward = 0.08F;
                t.wait += 1.0F;
              }});
  EXPECT_FALSE(find_slow_rank(read()));
}

TEST_F(RunTimesTest, ARankThatIsSlowForAWhileIsNamedWithTheSteps) {
  write_times(run(), {.last = 2000, .change = [](int64_t step, int rank, RankTimes& t) {
                        if (rank == 0 && step > 1000 && step <= 1300) t.forward = 0.06F;
                      }});
  const auto slow = find_slow_rank(read());
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->rank, 0);
  EXPECT_FALSE(slow->whole_run);
  EXPECT_NEAR(static_cast<double>(slow->first), 1001, 16);
  EXPECT_NEAR(static_cast<double>(slow->last), 1300, 16);
  EXPECT_NE(describe(*slow, read()).find(" in steps "), std::string::npos);
}

TEST_F(RunTimesTest, EvenRanksFewStepsAndOneRankHaveNoSlowOne) {
  write_times(run(), {});
  EXPECT_FALSE(find_slow_rank(read()));
  fs::remove_all(run() / "times");
  const auto uneven = [](int64_t, int rank, RankTimes& t) { t.forward *= rank == 1 ? 3 : 1; };
  write_times(run(), {.last = 10, .change = uneven});
  EXPECT_FALSE(find_slow_rank(read()));
  fs::remove_all(run() / "times");
  write_times(run(), {.ranks = 1, .change = uneven});
  EXPECT_FALSE(find_slow_rank(read()));
}

TEST_F(RunTimesTest, RanksThatAreNotKnownInAStepAreNotCounted) {
  write_times(run(), {.ranks = 3, .change = [](int64_t step, int rank, RankTimes& t) {
                        if (rank == 2 && step < 100) t = {};
                      }});
  const RunTimes times = read();
  EXPECT_EQ(times.total[2].steps, 1);
  EXPECT_FALSE(find_slow_rank(times));
}

TEST_F(RunTimesTest, TheExchangeIsWhatTheLastRankWaitsToo) {
  // Rank 1 is slow: it waits 10 ms, rank 0 waits 40 and was told that 25 of these are for peers.
  write_times(run(), {.change = [](int64_t, int rank, RankTimes& t) {
                t.backward = rank == 1 ? 0.08F : 0.05F;
                t.wait = rank == 1 ? 0.01F : 0.04F;
                t.peers = rank == 1 ? 0.0F : 0.025F;
              }});
  const ExchangeFigures e = exchange_figures(read());
  EXPECT_NEAR(e.exposed, 0.01, 1e-6);
  EXPECT_NEAR(e.peers, 0.015, 1e-6);
  EXPECT_NEAR(e.step, 0.13, 1e-6);
  EXPECT_NEAR(e.hidden, 0.02, 1e-6);
  EXPECT_NEAR(e.sent, 4e6, 1);
}

TEST_F(RunTimesTest, SlowStepsHaveTheRankAndPhaseThatMadeThem) {
  write_times(run(), {.change = [](int64_t step, int rank, RankTimes& t) {
                if (step == 20 && rank == 0) t.data = 0.5F;
                if (step == 30) t.wait = 0.5F;
                if (step == 40) {
                  if (rank == 1) t.forward = 0.5F;
                  if (rank == 0) t.wait = t.peers = 0.48F;
                }
                if (step == 50 && rank == 0) t.other = 0.4F;
              }});
  const RunTimes times = read();
  const auto cause = [&](int64_t wanted) {
    std::optional<std::string> out;
    for_each_counted_step(run() / "times", [&](const StepTimes& step) {
      if (step.step == wanted) out = cause_by_phases(step, times);
    });
    return out.value_or("none");
  };
  EXPECT_EQ(cause(20), "rank 0 on a waited for data");
  EXPECT_EQ(cause(30), "the exchange took longer");
  EXPECT_EQ(cause(40), "rank 1 on b took longer in forward");
  EXPECT_NE(cause(50).find("rank 0 on a did other things"), std::string::npos);
  EXPECT_EQ(cause(60), "none");

  Outliers outliers;
  outliers.steps = {{.step = 30, .excess = 0.49, .cause = "waiting for other ranks or the network"},
                    {.step = 40, .excess = 0.47, .cause = "meeting of the groups"}};
  refine_causes(run() / "times", times, outliers);
  EXPECT_EQ(outliers.steps[0].cause, "the exchange took longer");
  EXPECT_EQ(outliers.steps[1].cause, "meeting of the groups") << "is no general one";
  EXPECT_EQ(outliers.causes.size(), 2);
}

}  // namespace
}  // namespace lockstep
