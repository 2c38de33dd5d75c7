// What the report finds in runs that really were healthy, killed, slowed down or far apart.
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <map>
#include <thread>

#include "support/apart_runs.h"
#include "support/background.h"

namespace lockstep {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Large enough that a step is tens of milliseconds and its gradients a megabyte.
constexpr const char* kModel =
    "model.d_model=128 model.heads=4 model.feed_forward=256 batch.tokens=1024 ";

class FindingsTest : public ApartRuns {
 protected:
  json report_of(const std::string& name) const { return report_in(run(name)); }
  static json report_in(const fs::path& run) {
    const ProgramResult result = run_lockstep("report --json " + run.string());
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return json::parse(result.output, nullptr, false);
  }
  static std::map<std::string, std::string> findings(const json& report) {
    std::map<std::string, std::string> out;
    for (const json& finding : report.at("findings")) out[finding.at("id")] = finding.at("text");
    return out;
  }
  static json facts(const json& report, const std::string& id) {
    for (const json& answer : report.at("answers")) {
      if (answer.at("id") == id) return answer.at("facts");
    }
    ADD_FAILURE() << id;
    return {};
  }
  std::string words(const std::string& name, const std::string& more) const {
    return fmt::format("{}/tiny.toml run.folder={} {} {}", folder_->path().string(),
                       run(name).string(), kModel, more);
  }
  fs::path said(const std::string& name) const { return folder_->path() / (name + ".out"); }
};

// A process that gets half of its time, as by a limit on its processor: stopped and let go on, 20
// ms each.
class HalfSpeed {
 public:
  explicit HalfSpeed(pid_t process)
      : thread_([this, process] {
          while (!over_) {
            kill(process, SIGSTOP);
            std::this_thread::sleep_for(milliseconds(20));
            kill(process, SIGCONT);
            std::this_thread::sleep_for(milliseconds(20));
          }
        }) {}
  ~HalfSpeed() {
    over_ = true;
    thread_.join();
  }
  HalfSpeed(const HalfSpeed&) = delete;
  HalfSpeed& operator=(const HalfSpeed&) = delete;

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

TEST_F(FindingsTest, AHealthyRunHasNone) {
  std::map<std::string, std::string> found;
  json report;
  for (int attempt = 1; attempt <= 3; ++attempt) {  // noise of the machine is none of the run
    const std::string name = fmt::format("healthy{}", attempt);
    const ProgramResult trained = run_lockstep(
        "launch -n 2 -- train " + words(name, "training.steps=50"), "OMP_NUM_THREADS=1");
    ASSERT_EQ(trained.exit_code, 0) << trained.errors;
    report = report_of(name);
    found = findings(report);
    if (!found.contains("slow_rank")) break;
  }
  for (const char* id : {"slow_rank", "network_bound", "interrupted", "failure", "failed",
                         "unfinished", "stopped", "host_lost", "retransmits"}) {
    EXPECT_FALSE(found.contains(id)) << id << ": " << found[id];
  }
  // Every phase of both ranks was measured, and the parts are the whole.
  const json parts = facts(report, "duration").at("parts");
  double sum = 0;
  for (const auto& [name, value] : parts.items()) sum += value.get<double>();
  EXPECT_NEAR(sum, facts(report, "duration").at("wall_seconds").get<double>(), 0.05 * sum);
  EXPECT_GT(parts.at("forward").get<double>(), 0);
  EXPECT_GT(parts.at("backward").get<double>(), 0);
  ASSERT_EQ(facts(report, "processors").at("ranks").size(), 2u);
  EXPECT_GT(facts(report, "traffic").at("sent_bytes").get<double>(), 0);
}

TEST_F(FindingsTest, AKilledAndResumedRunSaysSo) {
  Background job("launch -n 2 --restarts 1 -- train " +
                     words("killed", "training.steps=500 checkpoint.every=5"),
                 said("killed"));
  const json live = wait_for_steps(run("killed"), 12);
  ASSERT_TRUE(live.is_object()) << read_file(said("killed"));
  const pid_t victim = live["ranks"][1]["process"];
  ASSERT_EQ(kill(victim, SIGKILL), 0);
  ASSERT_EQ(job.wait(60), 0) << read_file(said("killed"));
  const json report = report_of("killed");
  const auto found = findings(report);
  ASSERT_TRUE(found.contains("interrupted"));
  EXPECT_NE(found.at("interrupted").find("interrupted 1 time"), std::string::npos);
  ASSERT_TRUE(found.contains("failure"));
  EXPECT_NE(found.at("failure").find("rank 1"), std::string::npos) << found.at("failure");
  EXPECT_EQ(facts(report, "failures").at("attempts"), 2);
  EXPECT_FALSE(found.contains("unfinished"));
}

TEST_F(FindingsTest, ASlowRankIsNamedWithItsHost) {
  Background job("launch -n 2 -- train " + words("slow", "training.steps=300"), said("slow"));
  const json live = wait_for_steps(run("slow"), 2);
  ASSERT_TRUE(live.is_object()) << read_file(said("slow"));
  const pid_t victim = live["ranks"][1]["process"];
  {
    const HalfSpeed slow(victim);
    ASSERT_EQ(job.wait(90), 0) << read_file(said("slow"));
  }
  const json report = report_of("slow");
  const auto found = findings(report);
  ASSERT_TRUE(found.contains("slow_rank")) << report.dump(1);
  const std::string host = live["ranks"][1]["host"];
  EXPECT_NE(found.at("slow_rank").find("rank 1 on " + host), std::string::npos)
      << found.at("slow_rank");
  EXPECT_FALSE(found.contains("network_bound"));
  EXPECT_EQ(facts(report, "processors").at("slowest").at("rank"), 1);
}

TEST_F(FindingsTest, ASlowNetworkIsTheBottleneck) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  HostsApart hosts({.network = "rate_mbit = 50\ndelay_ms = 1"});
  bring(hosts);
  std::vector<std::unique_ptr<HostProgram>> ranks;
  for (int rank : {0, 1}) {
    ranks.push_back(hosts.start_as_user(
        rank == 0 ? "a" : "b",
        fmt::format("exec {} train tiny.toml run.folder=far {} batch.tokens=256 training.steps=30",
                    HostsApart::kProgram, kModel),
        {fmt::format("RANK={}", rank), "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=1",
         "MASTER_ADDR=" + hosts.lab().address("a"), "MASTER_PORT=29500", "OMP_NUM_THREADS=1"}));
  }
  for (auto& rank : ranks) ASSERT_EQ(rank->wait(seconds(60)), 0) << rank->output();
  const auto [code, said] = hosts.run("control", lockstep_here("fetch -H a,b far --cwd '~/work'"));
  ASSERT_EQ(code, 0) << said;
  const json report = report_in(desk() / "far");
  const auto found = findings(report);
  EXPECT_TRUE(found.contains("network_bound")) << report.dump(1);
  EXPECT_FALSE(found.contains("slow_rank")) << found.at("slow_rank");
  const json network = facts(report, "network");
  EXPECT_GT(network.at("exposed_seconds").get<double>(),
            0.3 * network.at("step_seconds").get<double>());
  EXPECT_GT(network.at("what_if").at("a network without cost").at("high").get<double>(), 1.4);
  // Two hosts: each sends and receives as much as it has gradients, by the formula and by count.
  const json traffic = facts(report, "traffic");
  EXPECT_NEAR(
      traffic.at("measured_bytes").get<double>() / traffic.at("predicted_bytes").get<double>(), 1,
      0.02);
}

}  // namespace
}  // namespace lockstep
