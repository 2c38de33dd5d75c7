#include "report/timeline/run_timeline.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "support/expect_error.h"
#include "support/invented_run.h"
#include "support/step_times.h"
#include "support/trace_rules.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

class RunTimelineTest : public ::testing::Test {
 protected:
  const fs::path& run() const { return folder_.path(); }

  Json make(const TimelineOptions& options = {}) {
    timeline_ = make_timeline(run(), options);
    const Json file = Json::parse(timeline_.text);
    EXPECT_EQ(TraceRules::broken(file), "");
    events_ = file.at("traceEvents");
    return events_;
  }
  // Names of processes or threads by place.
  std::map<std::pair<int, int>, std::string> names(const char* what) const {
    std::map<std::pair<int, int>, std::string> out;
    for (const Json& e : events_) {
      if (e["name"] == what) out[{e["pid"], e["tid"]}] = e["args"]["name"];
    }
    return out;
  }
  std::vector<Json> named(const std::string& name, int process = -1) const {
    std::vector<Json> out;
    for (const Json& e : events_) {
      if (e["name"] == name && (process < 0 || e["pid"] == process)) out.push_back(e);
    }
    return out;
  }
  bool noted(const char* words) const {
    for (const std::string& note : timeline_.notes) {
      if (note.find(words) != std::string::npos) return true;
    }
    return false;
  }

  TemporaryFolder folder_;
  Timeline timeline_;
  Json events_;
};

TEST_F(RunTimelineTest, HasEveryRanksPhasesOfEveryStep) {
  write_invented_run(run(), metrics_lines({}));
  write_times(run(), {.change = [](int64_t, int rank, RankTimes& t) {
                if (rank == 1) t.peers = 0.004F;
              }});
  make();
  const auto processes = names("process_name");
  EXPECT_EQ(processes.at({1, 0}), "run");
  EXPECT_EQ(processes.at({process_of_rank(0), 0}), "rank 0 on a");
  EXPECT_EQ(processes.at({process_of_rank(1), 0}), "rank 1 on b");
  EXPECT_EQ(names("thread_name").at({process_of_rank(1), kPhasesThread}), "phases");
  for (int rank : {0, 1}) {
    EXPECT_EQ(named("step 50", process_of_rank(rank)).size(), 1u);
    EXPECT_EQ(named("forward", process_of_rank(rank)).size(), 100u);
  }
  EXPECT_EQ(named("wait for peers", process_of_rank(0)).size(), 0u);
  EXPECT_EQ(named("wait for peers", process_of_rank(1)).size(), 100u);
  EXPECT_NEAR(named("backward")[0]["dur"].get<double>(), 50'000, 1);
  EXPECT_EQ(named("evaluation").size(), 1u);
  EXPECT_EQ(named("checkpoint").size(), 1u);
  EXPECT_EQ(named("attempt 1").size(), 1u);
  EXPECT_EQ(named("train/loss").size(), 100u);
  EXPECT_EQ(named("eval/nll").size(), 1u);
  EXPECT_TRUE(noted("No step was recorded span by span"));
  EXPECT_EQ(timeline_.events + names("process_name").size() * 2 + names("thread_name").size() * 2,
            events_.size());
}

TEST_F(RunTimelineTest, SpansAreExactAndTheirClocksAreRankZeros) {
  write_invented_run(run(), metrics_lines({}));
  write_times(run(), {});
  write_span_file(run() / "trace" / "steps_11-14.json", invented_spans(11, 14, 1001));
  make();
  EXPECT_TRUE(noted("Steps 11 to 14 are exact"));
  EXPECT_EQ(named("step 10").size(), 2u);
  EXPECT_EQ(named("step 11").size(), 0u) << "its spans show it";
  EXPECT_EQ(named("step 15").size(), 2u);
  // Bucket 1 overlaps bucket 0: a row of its own.
  const auto threads = names("thread_name");
  EXPECT_EQ(threads.at({process_of_rank(1), 100 * kExchangeThread + 1}), "exchanges (2)");
  const auto first = named("gradient bucket 0", process_of_rank(0));
  const auto second = named("gradient bucket 0", process_of_rank(1));
  // Four slices and four ends of arrows each.
  ASSERT_EQ(first.size(), 8u);
  ASSERT_EQ(second.size(), 8u);
  EXPECT_NEAR(first[0]["ts"].get<double>(), second[0]["ts"].get<double>(), 2)
      << "3 s between the clocks are gone";
  EXPECT_EQ(first[0]["args"]["bytes"], 2'000'000);
  EXPECT_NEAR(first[0]["ts"].get<double>(), 1'050'000, 2) << "1.05 s after the run's begin";

  write_span_file(run() / "trace" / "steps_31-32.json", invented_spans(31, 32, 1003));
  make();
  EXPECT_TRUE(noted("Steps 31 to 32 are exact"));
  EXPECT_EQ(named("optimizer", process_of_rank(1)).size(), 100u);
}

TEST_F(RunTimelineTest, ALongRunIsSummarisedAndSaysSo) {
  write_invented_run(run(), metrics_lines({.last = 2000, .total = 2000}));
  write_times(run(), {.last = 2000});
  make({.most_events = 1000});
  EXPECT_LT(timeline_.events, 1000u + 6000u);  // curves of 1,000 points each are beside them
  EXPECT_TRUE(noted("2,000 steps are summarised: a slice is 32 steps"));
  const auto stretch = named("steps 1 to 32", process_of_rank(1));
  ASSERT_EQ(stretch.size(), 1u);
  EXPECT_EQ(stretch[0]["args"]["steps"], 32);
  EXPECT_NEAR(stretch[0]["args"]["mean_step_ms"].get<double>(), 100, 0.1);
  EXPECT_NEAR(stretch[0]["dur"].get<double>(), 3.2e6, 100);
  EXPECT_NEAR(named("forward")[0]["dur"].get<double>(), 32 * 30'000, 100);

  make({.steps = {{100, 120}}, .most_events = 1000});
  EXPECT_EQ(named("step 100").size(), 2u);
  EXPECT_EQ(named("step 121").size(), 0u);
  EXPECT_EQ(named("evaluation").size(), 0u) << "it was later";
}

TEST_F(RunTimelineTest, RanksCanBeChosen) {
  write_invented_run(run(), metrics_lines({}));
  write_times(run(), {});
  write_span_file(run() / "trace" / "steps_11-14.json", invented_spans(11, 14, 1001));
  make({.ranks = RankFilter("1")});
  EXPECT_EQ(names("process_name").size(), 2u);
  EXPECT_EQ(named("forward", process_of_rank(0)).size(), 0u);
  EXPECT_EQ(named("forward", process_of_rank(1)).size(), 100u);
  EXPECT_ERROR(make({.ranks = RankFilter("7")}), ConfigError, "--ranks");
}

TEST_F(RunTimelineTest, FailuresRestartsAndWarningsAreThere) {
  write_invented_run(run(), metrics_lines({.last = 60, .end = ""}) +
                                metrics_lines({.first = 51, .begin = 1100, .start = "resume"}));
  write_times(run(), {.last = 60});
  write_times(run(), {.first = 51, .last = 100, .begin = 1100});
  write_file(run() / "launch.jsonl",
             "{\"time\":1007,\"event\":\"failure\",\"text\":\"rank 1 was killed\"}\n"
             "{\"time\":1008,\"event\":\"restart\",\"text\":\"again\"}\n");
  make();
  ASSERT_EQ(named("failure").size(), 1u);
  EXPECT_EQ(named("failure")[0]["s"], "g");
  EXPECT_EQ(named("failure")[0]["args"]["text"], "rank 1 was killed");
  EXPECT_EQ(named("restart").size(), 1u);
  EXPECT_EQ(named("attempt 2").size(), 1u);
  EXPECT_EQ(named("step 55").size(), 4u) << "both ranks did it in both attempts";
}

TEST_F(RunTimelineTest, SlowStepsHaveTheirCause) {
  InventedLines lines;
  std::string metrics = metrics_lines(lines);
  const std::string usual = R"("step":50,"epoch":0)";
  const std::size_t at = metrics.find(usual);
  const std::string time = R"("time/step_seconds":0.1)";
  metrics.replace(metrics.find(time, at), time.size(), R"("time/step_seconds":0.5)");
  write_invented_run(run(), metrics);
  write_times(run(), {.change = [](int64_t step, int rank, RankTimes& t) {
                if (step == 50 && rank == 1) t.forward = 0.43F;
                if (step == 50 && rank == 0) t.wait = t.peers = 0.41F;
              }});
  make();
  EXPECT_EQ(named("step 50: rank 1 on b took longer in forward").size(), 1u);
}

TEST_F(RunTimelineTest, ARunFromBeforeTimesShowsRankZerosSteps) {
  write_invented_run(run(), metrics_lines({}));
  make();
  EXPECT_TRUE(noted("The run has no times/"));
  EXPECT_TRUE(noted("--live 5"));
  EXPECT_EQ(named("compute", process_of_rank(0)).size(), 100u);
  EXPECT_EQ(names("process_name").size(), 2u);
}

TEST_F(RunTimelineTest, SaysWhatIsMissing) {
  EXPECT_ERROR(make(), ConfigError, "holds no run");
  write_invented_run(run(), "");
  EXPECT_ERROR(make(), ConfigError, "has no step yet");
  write_invented_run(run(), metrics_lines({}));
  EXPECT_ERROR(make({.steps = {{200, 210}}}), ConfigError, "the run has steps 1 to 100");
}

}  // namespace
}  // namespace lockstep
