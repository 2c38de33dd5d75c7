// Sixteen ranks of the task `pretend` on four hosts that share nothing.
#include <gtest/gtest.h>

#include "base/file.h"
#include "support/hosts_apart.h"
#include "support/program.h"

namespace lockstep {
namespace {

using std::chrono::seconds;

const char* const kSettings =
    "training.steps=40 pretend.evaluation_milliseconds=10 evaluation.every=20 checkpoint.every=10";

// Kills a rank of the host by the environment that it was started with.
std::pair<int, std::string> kill_rank(HostsApart& hosts, const std::string& host, int rank) {
  return hosts.run_as_user(
      host, fmt::format("for p in /proc/[0-9]*; do "
                        "if tr '\\0' '\\n' 2>/dev/null <$p/environ | grep -qx LOCKSTEP_RANK={}; "
                        "then kill -KILL ${{p#/proc/}} && echo killed; fi; done",
                        rank));
}

TEST(ManyRanks, SixteenOnFourHostsTrainThroughAKillAsOneDoes) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  HostsApart hosts({.names = {"a", "b", "c", "d"}});
  const fs::path recipe = fs::path(LOCKSTEP_SOURCE) / "configs/pretend.toml";
  hosts.put_all(recipe, "work/pretend.toml");
  TemporaryFolder desk;
  fs::copy_file(recipe, desk.path() / "pretend.toml");
  auto launch = hosts.start(
      "control",
      {"/bin/sh", "-c",
       fmt::format("cd {} && exec '{}' launch -H a:4,b:4,c:4,d:4 --cwd '~/work' --restarts 2 -- "
                   "train pretend.toml run.folder=run pretend.step_milliseconds=50 {}",
                   desk.path().string(), LOCKSTEP_PROGRAM, kSettings)},
      {"OMP_NUM_THREADS=1"});
  launch->expect("saved step_10");
  const auto [code, text] = kill_rank(hosts, "d", 15);
  EXPECT_EQ(text, "killed\n") << code;

  const ProgramResult one =
      run_lockstep(fmt::format("train {} run.folder={}/one pretend.step_milliseconds=0 {}",
                               recipe.string(), desk.path().string(), kSettings),
                   "OMP_NUM_THREADS=1");
  ASSERT_EQ(one.exit_code, 0) << one.errors;
  ASSERT_EQ(launch->wait(seconds(60)), 0) << launch->output();
  EXPECT_NE(launch->output().find("rank 15 on d was killed"), std::string::npos)
      << launch->output();
  const char* const kWeights = "checkpoints/step_40/weights.safetensors";
  EXPECT_EQ(read_file(hosts.file("a", fs::path("work/run") / kWeights)),
            read_file(desk.path() / "one" / kWeights));
}

}  // namespace
}  // namespace lockstep
