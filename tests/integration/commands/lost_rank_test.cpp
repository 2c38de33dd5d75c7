// A tiny training on two ranks, one of which is killed or stopped: how soon, and with what message,
// the job ends; what `watch` shows of it.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "support/background.h"
#include "support/tiny_runs.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

struct Case {
  const char* name;
  int signal, victim;
  bool shared_memory;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class LostRankTest : public TinyRuns, public ::testing::WithParamInterface<Case> {};

TEST_P(LostRankTest, IsNamedByTheOtherWhichEndsWithExitCodeFour) {
  const Case& c = GetParam();
  const fs::path folder = run(c.name);
  const fs::path output = folder_->path() / (std::string(c.name) + ".out");
  Background job(fmt::format("launch -n 2 --grace 1 -- train {}/tiny.toml run.folder={} "
                             "training.steps=100000000 comm.lost_seconds=2 comm.shared_memory={}",
                             folder_->path().string(), folder.string(), c.shared_memory),
                 output);
  json live = wait_for_steps(folder);
  ASSERT_TRUE(live.is_object()) << read_file(output);
  const pid_t victim = live["ranks"][c.victim]["process"];
  auto start = Clock::now();
  ASSERT_EQ(kill(victim, c.signal), 0);
  auto error_of = [&](int rank) { return folder / fmt::format("logs/rank{:02}.error", rank); };
  const fs::path error = error_of(1 - c.victim);
  while (!fs::exists(error) && seconds_since(start) < 20) {
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  const double detection = seconds_since(start);
  std::printf("%s: %.2f s to detection\n", c.name, detection);
  const bool killed = c.signal == SIGKILL;
  EXPECT_LT(detection, killed ? 1.5 : 4.5);
  EXPECT_EQ(job.wait(20), 4) << read_file(output);

  ASSERT_TRUE(fs::exists(error)) << read_file(output);
  const std::string text = read_file(error), host = live["ranks"][c.victim]["host"];
  for (const std::string& part :
       {fmt::format("error: lost rank {} on {} (127.0.0.1): ", c.victim, host),
        std::string(killed ? "its process ended" : "no sign of life for 2."),
        fmt::format("while: rank {} of 2 in ", 1 - c.victim),
        std::string("because: last seen in step "), std::string("last seen          started")}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  }
  EXPECT_FALSE(fs::exists(error_of(c.victim)));
  if (c.victim == 0) return;  // who would say so
  live = live_of(folder);
  EXPECT_EQ(live["state"], "failed");
  EXPECT_EQ(live["reason"].get<std::string>().find("lost rank 1 on "), 0u) << live["reason"];
}

INSTANTIATE_TEST_SUITE_P(Cases, LostRankTest,
                         testing::Values(Case{"killed_1_memory", SIGKILL, 1, true},
                                         Case{"killed_0_network", SIGKILL, 0, false},
                                         Case{"killed_1_network", SIGKILL, 1, false},
                                         Case{"stopped_1_network", SIGSTOP, 1, false},
                                         Case{"stopped_0_memory", SIGSTOP, 0, true}),
                         [](const auto& info) { return info.param.name; });

class WatchTest : public TinyRuns {};

TEST_F(WatchTest, ShowsBothRanksAndTheEndOfTheRun) {
  ProgramResult trained = train("watched", 2, "training.steps=30");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  json live = live_of(run("watched"));
  EXPECT_EQ(live["state"], "ended");
  EXPECT_EQ(live["reason"], "steps");
  EXPECT_EQ(live["step"], 30);
  ASSERT_EQ(live["ranks"].size(), 2u);
  for (const json& rank : live["ranks"]) {
    EXPECT_GT(rank["usage"]["memory_bytes"], 1e6);
    double parts = rank["compute_seconds"].get<double>() + rank["wait_seconds"].get<double>() +
                   rank["data_seconds"].get<double>();
    EXPECT_NEAR(rank["step_seconds"], parts, 1e-5);
  }
  ProgramResult shown = run_lockstep("watch " + run("watched").string());
  EXPECT_EQ(shown.exit_code, 0) << shown.errors;
  EXPECT_NE(shown.output.find("step 30/30 (100.0%)"), std::string::npos) << shown.output;
  EXPECT_NE(shown.output.find("ended (steps) after "), std::string::npos) << shown.output;
  ProgramResult logs = run_lockstep("watch --logs --once --lines 500 " + run("watched").string());
  EXPECT_NE(logs.output.find(":1 20"), std::string::npos) << logs.output;
}

// The last step of an epoch leaves one rank without a sentence: its buckets start after its
// backward pass, and yet before the figures of the step, as those of the other rank do.
TEST_F(WatchTest, RanksStayInStepOverTheNetworkWhenOneHasNothingToDo) {
  ProgramResult trained = train("uneven", 2, "training.steps=80 comm.shared_memory=false");
  EXPECT_EQ(trained.exit_code, 0) << trained.errors;
}

TEST_F(WatchTest, ARunOfOneRankIsWatchedAsWell) {
  ASSERT_EQ(train("alone", 1, "training.steps=5").exit_code, 0);
  json live = live_of(run("alone"));
  EXPECT_EQ(live["state"], "ended");
  EXPECT_EQ(live["ranks"].size(), 1u);
  EXPECT_GT(live["ranks"][0]["usage"]["memory_bytes"], 1e6);
}

}  // namespace
}  // namespace lockstep
