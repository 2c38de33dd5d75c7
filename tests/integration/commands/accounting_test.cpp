// Whole runs of the built program: where the time of every rank's steps went, and what was recorded
// of them span by span.
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <set>
#include <thread>

#include "formats/span_file.h"
#include "formats/step_times.h"
#include "support/background.h"
#include "support/tiny_runs.h"

namespace lockstep {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

std::vector<StepTimes> times_of(const fs::path& run, int attempt) {
  std::vector<StepTimes> out;
  read_step_times(run / "times" / fmt::format("attempt_{}.bin", attempt),
                  [&](const StepTimes& step) { out.push_back(step); });
  return out;
}

double seconds_of(const RankTimes& t) {
  return double{t.data} + t.forward + t.backward + t.wait + t.optimizer + t.other;
}

class Accounting : public TinyRuns {
 protected:
  void expect_like_metrics(const RankTimes& times, const json& line) const {
    EXPECT_NEAR(times.data, line.at("time/data_seconds"), 5e-3);
    EXPECT_NEAR(times.forward, line.at("time/forward_seconds"), 1e-6);
    EXPECT_NEAR(times.backward, line.at("time/backward_seconds"), 1e-6);
    EXPECT_NEAR(times.wait, line.at("time/wait_seconds"), 5e-3);
    EXPECT_NEAR(times.optimizer, line.at("time/optimizer_seconds"), 1e-6);
    // Both read the clock at either end of a wait: what a process loses between two readings is
    // part of the wait for one and of the rest for the other.
    EXPECT_GE(double{times.data} + times.wait + times.other,
              line.at("time/data_seconds").get<double>() +
                  line.at("time/wait_seconds").get<double>() +
                  line.at("time/other_seconds").get<double>() - 1e-4)
        << "and listeners";
    EXPECT_NEAR(times.hidden, line.at("time/hidden_seconds"), 1e-6);
    EXPECT_EQ(times.sent_bytes, line.at("comm/payload_sent_bytes").get<float>());
    EXPECT_EQ(times.received_bytes, line.at("comm/received_bytes").get<float>());
  }

  Background start(const std::string& name, const std::string& words) const {
    return Background(fmt::format("launch -n 2 -- train {}/tiny.toml run.folder={} "
                                  "training.steps=100000000 trace.steps=0 {}",
                                  folder_->path().string(), run(name).string(), words),
                      folder_->path() / (name + ".out"));
  }

  void ask(const std::string& name, const std::string& request) const {
    fs::create_directories(run(name) / "trace");
    write_file(run(name) / "trace/request.json", request);
  }

  // Whether it is gone within some seconds.
  bool is_answered(const std::string& name) const {
    const auto start = std::chrono::steady_clock::now();
    while (fs::exists(run(name) / "trace/request.json")) {
      if (seconds_since(start) > 20) return false;
      std::this_thread::sleep_for(milliseconds{20});
    }
    return true;
  }

  void stop(Background& job, const std::string& name) const {
    kill(job.process(), SIGTERM);
    EXPECT_EQ(job.wait(30), 128 + SIGTERM) << read_file(folder_->path() / (name + ".out"));
  }
};

TEST_F(Accounting, EveryStepOfEveryRankAddsUp) {
  ProgramResult trained = train("sums", 2);
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const std::vector<StepTimes> steps = times_of(run("sums"), 1);
  const std::vector<json> lines = metrics_of(run("sums"), "step");
  ASSERT_EQ(steps.size(), 20u) << "the last one too";
  ASSERT_EQ(lines.size(), 20u);
  double totals[2] = {0, 0};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const StepTimes& s = steps[i];
    EXPECT_EQ(s.step, static_cast<int64_t>(i) + 1);
    ASSERT_EQ(s.ranks.size(), 2u);
    expect_like_metrics(s.ranks[0], lines[i]);
    EXPECT_NEAR(lines[i].at("time/compute_seconds").get<double>(),
                lines[i].at("time/forward_seconds").get<double>() +
                    lines[i].at("time/backward_seconds").get<double>() +
                    lines[i].at("time/optimizer_seconds").get<double>() +
                    lines[i].at("time/other_seconds").get<double>(),
                1e-6);
    for (int rank : {0, 1}) {
      const RankTimes& t = s.ranks[static_cast<std::size_t>(rank)];
      EXPECT_GT(t.forward, 0);
      EXPECT_GT(t.backward, 0);
      EXPECT_GT(t.optimizer, 0);
      EXPECT_GE(t.hidden, 0);
      EXPECT_LE(t.hidden, t.forward + t.backward);
      EXPECT_GE(t.peers, 0);
      EXPECT_LE(t.peers, t.wait);
      totals[rank] += seconds_of(t);
      // Two ranks hand each other gradients, and figures: 12 of the step, 10 of each rank.
      const double bytes = lines[i].at("comm/sent_bytes").get<double>() + 8 * (12 + 2 * 10);
      EXPECT_EQ(t.sent_bytes, bytes);
      EXPECT_EQ(t.received_bytes, bytes);
    }
    if (i == 0) continue;
    EXPECT_NEAR(s.begin - steps[i - 1].begin, seconds_of(steps[i - 1].ranks[0]), 5e-3)
        << "nothing is left out between steps " << i << " and " << i + 1;
  }
  EXPECT_NEAR(totals[1], totals[0], 0.2 * totals[0] + 0.05) << "ranks in lockstep";

  ProgramResult resumed = train("sums", 2, "training.steps=26 --resume");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.errors;
  const std::vector<StepTimes> rest = times_of(run("sums"), 2);
  ASSERT_EQ(rest.size(), 6u);
  EXPECT_EQ(rest.front().step, 21);
  EXPECT_EQ(rest.back().step, 26);
  EXPECT_EQ(times_of(run("sums"), 1).size(), 20u);
}

TEST_F(Accounting, OneRankAndShardsAndTheNetworkAddUpToo) {
  const std::string few = "training.steps=4 ";
  ASSERT_EQ(train("one", 1, few).exit_code, 0);
  ASSERT_EQ(
      train("network", 2, few + "comm.shared_memory=false training.shard_optimizer=true").exit_code,
      0);
  for (const char* name : {"one", "network"}) {
    const std::vector<StepTimes> steps = times_of(run(name), 1);
    const std::vector<json> lines = metrics_of(run(name), "step");
    ASSERT_EQ(steps.size(), 4u);
    for (std::size_t i = 0; i < 4; ++i) expect_like_metrics(steps[i].ranks[0], lines[i]);
  }
  EXPECT_EQ(times_of(run("one"), 1)[3].ranks[0].hidden, 0);
  EXPECT_EQ(times_of(run("one"), 1)[3].ranks[0].sent_bytes, 0);
  // Gradients, figures, and of the weights this rank's half to the other.
  const json line = metrics_of(run("network"), "step")[2];
  const double gradients = line.at("comm/sent_bytes");
  EXPECT_NEAR(line.at("comm/payload_sent_bytes"), gradients * 1.5 + 240, 0.01 * gradients);
}

// With local steps a rank knows of its own group between two meetings.
TEST_F(Accounting, OtherGroupsOfLocalStepsAreZero) {
  ProgramResult trained =
      train("local", 2,
            "comm.strategy=local_sgd comm.local_steps=5 comm.local_after=5 training.steps=15");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const std::vector<StepTimes> steps = times_of(run("local"), 1);
  ASSERT_EQ(steps.size(), 15u);
  for (const StepTimes& s : steps) {
    EXPECT_GT(s.ranks[0].forward, 0);
    // Those of a step travel with the next one; the last ones at the end.
    const bool is_told = s.step < 5 || s.step == 15;
    EXPECT_EQ(s.ranks[1].forward > 0, is_told) << s.step;
    const bool exchanges = s.step <= 5 || s.step % 5 == 0;
    EXPECT_EQ(s.ranks[0].received_bytes > 0, exchanges) << s.step;
  }
}

// Steps that mostly compute, so that it is mostly there that the rank stands still: far longer than
// other programs on these cores would keep either rank from them.
TEST_F(Accounting, AStoppedRankIsNotTakenForASlowNetwork) {
  Background job = start("slow", "batch.tokens=2048 model.d_model=64");
  const json live = wait_for_steps(run("slow"));
  ASSERT_TRUE(live.is_object()) << read_file(folder_->path() / "slow.out");
  const pid_t victim = live["ranks"][1]["process"];
  const int64_t first = live["ranks"][1]["step"];
  for (int i = 0; i < 25; ++i) {
    kill(victim, SIGSTOP);
    std::this_thread::sleep_for(milliseconds{120});
    kill(victim, SIGCONT);
    std::this_thread::sleep_for(milliseconds{20});
  }
  const int64_t last = live_of(run("slow"))["ranks"][1]["step"];
  stop(job, "slow");
  double waited = 0, peers[2] = {0, 0}, busy[2] = {0, 0};
  for (const StepTimes& s : times_of(run("slow"), 1)) {
    if (s.step <= first || s.step > last) continue;
    waited += s.ranks[0].wait;
    for (std::size_t rank : {0u, 1u}) {
      peers[rank] += s.ranks[rank].peers;
      busy[rank] += seconds_of(s.ranks[rank]) - s.ranks[rank].wait;
    }
  }
  EXPECT_GT(waited, 0.2);
  EXPECT_GT(peers[0], 0.4 * waited);
  EXPECT_GT(busy[1], busy[0] + 0.1);
  EXPECT_GT(peers[0], 2 * peers[1]);
}

std::set<std::string> names_in(const RankSpans& rank, SpanRow row) {
  std::set<std::string> out;
  for (const Span& span : rank.spans) {
    if (span.row == row) out.insert(rank.names.at(static_cast<std::size_t>(span.name)));
  }
  return out;
}

TEST_F(Accounting, AnAttemptRecordsItsFirstStepsThatTheConfigurationNames) {
  ASSERT_EQ(train("window", 2, "trace.first=4 trace.steps=3").exit_code, 0);
  const std::vector<fs::path> files = span_files(run("window"));
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].filename(), "steps_4-6.json");
  const SpanFile file = read_span_file(files[0]);
  ASSERT_EQ(file.ranks.size(), 2u);
  for (const RankSpans& rank : file.ranks) {
    EXPECT_EQ(names_in(rank, SpanRow::kPhases),
              (std::set<std::string>{"backward", "data", "forward", "optimizer", "wait"}));
    EXPECT_TRUE(names_in(rank, SpanRow::kExchange).count("gradient bucket 0"));
    EXPECT_TRUE(names_in(rank, SpanRow::kExchange).count("figures of a step"));
    EXPECT_TRUE(names_in(rank, SpanRow::kBackground).count("batch"));
    EXPECT_FALSE(rank.host.empty());
    EXPECT_GT(rank.process, 0);
    EXPECT_LT(std::abs(rank.clock_offset), 0.05) << "one machine";
    for (const Span& span : rank.spans) {
      EXPECT_GE(span.step, 4);
      EXPECT_LE(span.step, 6);
    }
  }
  EXPECT_NE(file.ranks[0].process, file.ranks[1].process);
  ASSERT_EQ(train("window", 2, "trace.first=2 trace.steps=90 training.steps=25 --resume").exit_code,
            0);
  EXPECT_TRUE(fs::exists(run("window") / "trace/steps_22-25.json")) << "as far as the run came";
}

TEST_F(Accounting, ALiveRunRecordsWhatIsAskedFor) {
  Background job = start("live", "");
  ASSERT_TRUE(wait_for_steps(run("live")).is_object()) << read_file(folder_->path() / "live.out");
  ask("live", R"({"steps": 5, "id": "first"})");
  ASSERT_TRUE(is_answered("live"));
  std::vector<fs::path> files = span_files(run("live"));
  ASSERT_EQ(files.size(), 1u);
  const SpanFile file = read_span_file(files[0]);
  EXPECT_EQ(file.last_step, file.first_step + 4);
  ASSERT_EQ(file.ranks.size(), 2u);
  for (const RankSpans& rank : file.ranks) {
    int forwards = 0;
    for (const Span& span : rank.spans) {
      forwards += rank.names.at(static_cast<std::size_t>(span.name)) == "forward" ? 1 : 0;
    }
    EXPECT_EQ(forwards, 5);
  }
  ask("live", R"({"steps": 0, "id": "none"})");
  ASSERT_TRUE(is_answered("live"));
  EXPECT_EQ(span_files(run("live")).size(), 1u);
  ask("live", R"({"steps": 10000, "id": "more than there will be"})");
  std::this_thread::sleep_for(milliseconds{2500});
  stop(job, "live");
  files = span_files(run("live"));
  ASSERT_EQ(files.size(), 2u) << read_file(folder_->path() / "live.out");
  const SpanFile cut = read_span_file(files[1]);
  EXPECT_GT(cut.last_step, cut.first_step);
  EXPECT_FALSE(fs::exists(run("live") / "trace/request.json"));
  const std::string log = read_file(folder_->path() / "live.out");
  EXPECT_NE(log.find("steps: expected 1 to 10000, got 0"), std::string::npos) << log;
}

}  // namespace
}  // namespace lockstep
