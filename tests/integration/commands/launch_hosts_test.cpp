// Training over real sshd on virtual hosts that have nothing in common: 2 x 2 ranks, a host
// whose power is cut, and its return.
#include <gtest/gtest.h>
#include <signal.h>

#include <map>
#include <set>

#include "support/apart_runs.h"
#include "support/expect_says.h"

namespace lockstep {
namespace {

using std::chrono::seconds;

class LaunchHostsTest : public ApartRuns {};

TEST_F(LaunchHostsTest, GoOnWhenAHostLosesItsPowerAndWhenItReturns) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  HostsApart hosts;
  bring(hosts);
  auto job =
      launch(hosts, "power", "-H a:2,b:2 --min-hosts 1 --host-timeout 10 --host-poll 1 --silence 3",
             "training.steps=10000000 checkpoint.every=20 comm.timeout_seconds=60");
  job->expect("step_20");
  hosts.power_off("b");
  job->expect("host b lost");
  job->expect("host b stays away: going on without it");
  job->expect("attempt 1: 2 ranks on 1 of 2 hosts");
  job->expect("resumed from");
  hosts.power_on("b");
  job->expect("host b is back");
  job->expect("attempt 2: 4 ranks on 2 of 2 hosts");
  job->signal(SIGTERM);
  EXPECT_EQ(job->wait(seconds(30)), 143) << job->output();
}

// A network of delays beside the one that ssh has: it is the first that ranks are to meet in.
TEST_F(LaunchHostsTest, MeetInTheNetworkThatTheirNamesStandFor) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  HostsApart hosts({.network = "delay_ms = 40\ncontrol = 'separate'"});
  bring(hosts);
  auto job = launch(hosts, "far", "-H a:2,b:2",
                    "training.steps=6 evaluation.every=0 monitor.every_seconds=1");
  ASSERT_EQ(job->wait(seconds(90)), 0) << job->output();
  const fs::path run = run_on(hosts, "a", "far");
  const std::vector<nlohmann::json> steps = metrics_of(run, "step");
  EXPECT_EQ(steps.size(), 6u);
  // In each step both hosts hear what the other says in it. Out of step they wait for twice the
  // delay and not at all in turns.
  double seconds_in_all = 0;
  for (const nlohmann::json& step : steps) {
    seconds_in_all += step.at("time/step_seconds").get<double>();
  }
  EXPECT_GT(seconds_in_all, 5 * 0.04);
  // Of each host the first rank samples; what it saw came to rank 0 with its beats.
  std::map<std::string, std::set<int>> ranks;
  for (const nlohmann::json& line : metrics_of(run, "host")) {
    EXPECT_GT(line.at("in_bytes_per_second").get<double>(), 0) << line;
    std::set<int>& of_host = ranks[line.at("host").get<std::string>()];
    for (const nlohmann::json& rank : line.at("ranks")) of_host.insert(rank.at("rank").get<int>());
  }
  const std::map<std::string, std::set<int>> expected{{"a", {0, 1}}, {"b", {2, 3}}};
  EXPECT_EQ(ranks, expected);
}

// The number of ranks that the launcher took for host a, by its own words.
int ranks_of_a(const std::string& output) {
  const std::string head = "lockstep launch: a: ";
  const std::size_t at = output.find(head);
  return at == std::string::npos ? 0 : std::atoi(output.c_str() + at + head.size());
}

TEST_F(LaunchHostsTest, AskEachHostWithoutANumberHowManyRanksSuitIt) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  HostsApart hosts;
  auto launch_auto = [&](const std::vector<std::string>& words) {
    std::vector<std::string> all = {LOCKSTEP_PROGRAM, "launch", "-n", "auto", "--cwd", "~/work"};
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), {"--program", "sh", "--", "-c", "echo of $LOCKSTEP_SIZE"});
    return hosts.start("control", all);
  };
  auto both = launch_auto({"-H", "a,b:3"});
  ASSERT_EQ(both->wait(seconds(60)), 0) << both->output();
  const int ranks = ranks_of_a(both->output());
  EXPECT_GE(ranks, 1);
  expect_says(both->output(), fmt::format("of {}", ranks + 3));
  EXPECT_EQ(both->output().find("launch: b: "), std::string::npos) << both->output();

  hosts.power_off("b");
  auto one = launch_auto({"-H", "a,b", "--min-hosts", "1", "--host-timeout", "10"});
  ASSERT_EQ(one->wait(seconds(90)), 0) << one->output();
  expect_says(one->output(), fmt::format("b: does not answer, {} rank", ranks));
  expect_says(one->output(), "as on a once it does");
  expect_says(one->output(), fmt::format("of {}", ranks));
}

}  // namespace
}  // namespace lockstep
