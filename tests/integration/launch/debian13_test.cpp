// The program built here on a host with Debian 13 beside one with this machine's system: what it
// needs comes with it. LOCKSTEP_TRIXIE_ROOT names the root, which tests/fresh/host_root makes.
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/apart_runs.h"
#include "support/expect_says.h"

namespace lockstep {
namespace {

using std::chrono::seconds;

class Debian13 : public ApartRuns {};

TEST_F(Debian13, TrainsTogetherWithAHostOfThisSystem) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  const char* root = std::getenv("LOCKSTEP_TRIXIE_ROOT");
  if (root == nullptr) GTEST_SKIP() << "LOCKSTEP_TRIXIE_ROOT names no root (tests/fresh/host_root)";
  HostsApart hosts(
      {.host = {{"b", fmt::format("system = '{}'", root)}}, .program = ApartProgram::kNone});
  bring(hosts);
  expect_says(hosts.run("b", "cat /etc/os-release").second, "VERSION_ID=\"13\"");
  auto [code, said] = hosts.run("control", lockstep_here("cluster setup -H a,b"), seconds(280));
  ASSERT_EQ(code, 0) << said;
  auto job = launch(hosts, "both", "-H a:1,b:1", "training.steps=8 monitor.every_seconds=1");
  ASSERT_EQ(job->wait(seconds(120)), 0) << job->output();
  EXPECT_EQ(metrics_of(run_on(hosts, "a", "both"), "step").size(), 8u);
  std::tie(code, said) = hosts.run("control", lockstep_here("fetch -H a,b both --cwd '~/work'"));
  ASSERT_EQ(code, 0) << said;
  expect_says(read_file(desk() / "both/logs/rank01.log"), "rank");
}

}  // namespace
}  // namespace lockstep
