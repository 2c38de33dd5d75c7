// lockstep plan: what it predicts is what the run then measures.
#include <gtest/gtest.h>

#include "support/apart_runs.h"

namespace lockstep {
namespace {

using nlohmann::json;
using std::chrono::seconds;

// Large enough that a step is tens of milliseconds and its gradients a megabyte.
constexpr const char* kModel =
    "model.d_model=128 model.heads=4 model.feed_forward=256 batch.tokens=1024 ";
constexpr double kTolerance = 0.15;  // what the issue asks for; other work shares the machine

class PlanCommand : public ApartRuns {
 protected:
  std::string words(const std::string& name, int steps) const {
    return fmt::format("{}/tiny.toml run.folder={} {} training.steps={}", folder_->path().string(),
                       run(name).string(), kModel, steps);
  }
  // How the run compared itself with its plan.
  json comparison(const std::string& name) const { return comparison_in(run(name)); }
  static json comparison_in(const fs::path& run) {
    std::vector<json> found = metrics_of(run, "plan");
    return found.empty() ? json() : found.back();
  }
};

TEST_F(PlanCommand, PredictsAStepOfOneMachine) {
  json result;
  for (int attempt = 1; attempt <= 3; ++attempt) {  // noise is not the plan's fault
    std::string name = fmt::format("alone{}", attempt);
    ProgramResult plan = run_lockstep("plan --save " + words(name, 40), "OMP_NUM_THREADS=1");
    ASSERT_EQ(plan.exit_code, 0) << plan.errors;
    EXPECT_NE(plan.output.find("Best: one host"), std::string::npos) << plan.output;
    ProgramResult train = run_lockstep("train " + words(name, 40), "OMP_NUM_THREADS=1");
    ASSERT_EQ(train.exit_code, 0) << train.errors;
    EXPECT_NE(train.errors.find("plan: predicted"), std::string::npos) << train.errors;
    result = comparison(name);
    ASSERT_FALSE(result.is_null());
    if (std::abs(result.at("error").get<double>()) <= kTolerance) break;
  }
  EXPECT_NEAR(result.at("error").get<double>(), 0, kTolerance) << result;
}

struct LinkCase {
  int rate_mbit, delay_ms;  // delay: one way
  int steps = 40;
  double tolerance = kTolerance;
};
std::ostream& operator<<(std::ostream& out, const LinkCase& link) {
  return out << link.rate_mbit << " Mbit/s, " << link.delay_ms << " ms";
}

class PlanOverALink : public PlanCommand, public ::testing::WithParamInterface<LinkCase> {};

TEST_P(PlanOverALink, PredictsAStep) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  HostsApart hosts({.network = fmt::format("rate_mbit = {}\ndelay_ms = {}", GetParam().rate_mbit,
                                           GetParam().delay_ms)});
  bring(hosts);
  json result;
  for (int attempt = 1; attempt <= 2; ++attempt) {
    const std::string name =
        fmt::format("far-{}-{}-{}", GetParam().rate_mbit, GetParam().delay_ms, attempt);
    const std::string run_words =  // little to compute
        fmt::format("tiny.toml run.folder={} {} training.steps={} batch.tokens=256", name, kModel,
                    GetParam().steps);
    auto [code, text] = hosts.run(
        "control",
        "export OMP_NUM_THREADS=1; " +
            lockstep_here("plan -H a,b --cwd '~/work' --steps 5 --save --price 0.5/h " + run_words),
        seconds(90));
    ASSERT_EQ(code, 0) << text;
    EXPECT_NE(text.find("Best: comm."), std::string::npos) << text;
    hosts.put("a", desk() / name / "plan.json", fs::path("work") / name / "plan.json");
    std::vector<std::unique_ptr<HostProgram>> ranks;
    for (int rank : {0, 1}) {
      ranks.push_back(hosts.start_as_user(
          rank == 0 ? "a" : "b", fmt::format("exec {} train {}", HostsApart::kProgram, run_words),
          {fmt::format("RANK={}", rank), "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=1",
           "MASTER_ADDR=" + hosts.lab().address("a"), "MASTER_PORT=29500", "OMP_NUM_THREADS=1"}));
    }
    for (auto& rank : ranks) ASSERT_EQ(rank->wait(seconds(60)), 0) << rank->output();
    result = comparison_in(run_on(hosts, "a", name));
    ASSERT_FALSE(result.is_null());
    // Communication dominates: otherwise this tests something else.
    EXPECT_GT(result.at("measured").at("wait_seconds").get<double>(),
              result.at("measured").at("compute_seconds").get<double>())
        << result;
    if (std::abs(result.at("error").get<double>()) <= GetParam().tolerance) break;
  }
  EXPECT_NEAR(result.at("error").get<double>(), 0, GetParam().tolerance) << result;
}

// On long ways a packet that is lost in one direction holds up both, which the measured sums count
// half. At the start of a run TCP's windows overshoot the line, and the two ranks' steps are long
// and short by turns for some tens of steps: runs of 40 steps took up to 39 % more than predicted,
// of 120 steps 0 to 14 % (docs/before-a-run.md#lockstep-plan).
INSTANTIATE_TEST_SUITE_P(Sweep, PlanOverALink,
                         ::testing::Values(LinkCase{100, 20, 120, 0.25}, LinkCase{1000, 5}));
INSTANTIATE_TEST_SUITE_P(SlowSweep, PlanOverALink,
                         ::testing::Values(LinkCase{20, 1}, LinkCase{1000, 100, 120, 0.25}));

TEST_F(PlanCommand, PlansForHostsThatAreNotThereYet) {
  ProgramResult plan = run_lockstep(
      "plan --hosts-assumed 4 --bandwidth 1gbit --latency 0.1ms --step-seconds 0.5 --price 0.526/h "
      "--json " +
      words("assumed", 1000));
  ASSERT_EQ(plan.exit_code, 0) << plan.errors;
  json report = json::parse(plan.output);
  const json& step = report.at("prediction").at("step");
  EXPECT_EQ(report.at("ranks"), 4);
  EXPECT_NEAR(step.at("compute_seconds").get<double>(), 0.5, 1e-6);
  const double bytes = report.at("measurement").at("gradient_bytes");
  EXPECT_NEAR(step.at("sent_bytes").get<double>(), 1.5 * bytes, 200);
  const double seconds = report.at("prediction").at("run").at("seconds");
  EXPECT_NEAR(report.at("prediction").at("cost").get<double>(), 0.526 * 4 * seconds / 3600, 1e-6);
  EXPECT_FALSE(fs::exists(run("assumed")));
}

TEST_F(PlanCommand, DoesNotCompareWithAPlanForOtherRanks) {
  ProgramResult plan = run_lockstep(
      fmt::format("plan --hosts-assumed 2 --bandwidth 1gbit --latency 0.1ms --step-seconds 0.1 "
                  "--out {} {}",
                  run("two.json").string(), words("other", 8)));
  ASSERT_EQ(plan.exit_code, 0) << plan.errors;
  ProgramResult train = run_lockstep(
      fmt::format("train {} run.plan={}", words("other", 8), run("two.json").string()));
  EXPECT_EQ(train.exit_code, 0) << train.errors;
  EXPECT_NE(train.errors.find("was made for 2 ranks, these are 1: not compared"), std::string::npos)
      << train.errors;
  write_file(run("bad.json"), "{\"format\": 1}");
  train =
      run_lockstep(fmt::format("train {} run.plan={}", words("bad", 8), run("bad.json").string()));
  EXPECT_EQ(train.exit_code, 3);
  EXPECT_NE(train.errors.find("is no plan that `lockstep plan` wrote"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
