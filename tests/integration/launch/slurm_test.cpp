// Slurm itself, over virtual hosts that share nothing: srun, and the batch script of
// docs/examples, which both starts a run and goes on with it.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "support/expect_says.h"
#include "support/slurm_cluster.h"
#include "support/tiny_runs.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;

constexpr const char* kScript = LOCKSTEP_SOURCE "/docs/examples/slurm.sbatch";
constexpr double kPatience = 120;  // seconds; the machine may be busy

class Slurm : public TinyRuns {
 protected:
  std::string words(const std::string& more) const {
    return fmt::format("{}/tiny.toml {}", folder_->path().string(), more);
  }
  // The loss of each step, the last time that it was taken; of a run folder of a node.
  static std::map<int64_t, double> losses(const fs::path& run) {
    std::map<int64_t, double> out;
    for (const nlohmann::json& step : metrics_of(run, "step")) {
      out[step.at("step")] = step.at("train/loss");
    }
    return out;
  }
  static int64_t steps_taken(const fs::path& run) {
    if (!fs::exists(run / "metrics.jsonl")) return 0;
    // The last line may be under way.
    const std::string text = read_file(run / "metrics.jsonl");
    const std::size_t at = text.rfind("\"step\":");
    return at == std::string::npos ? 0 : std::atoll(text.c_str() + at + 7);
  }
  static void wait_for_steps(const fs::path& run, int64_t steps) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kPatience);
    while (steps_taken(run) < steps) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << run << " is at " << steps_taken(run);
      std::this_thread::sleep_for(10ms);
    }
  }
  // Submits the example's script with options of sbatch, variables of it and words of train.
  static void submit(SlurmCluster& cluster, const std::string& options, const std::string& words) {
    const auto [code, said] = cluster.run(
        fmt::format("RUN=/srv/run sbatch --output=/srv/out.txt {} {} {}", options, kScript, words));
    ASSERT_EQ(code, 0) << said;
  }
  static std::string wait_for_state(SlurmCluster& cluster, const std::string& state) {
    return cluster.wait_until(
        "scontrol show job 1",
        [&](const std::string& text) {
          return text.find("JobState=" + state) != std::string::npos;
        },
        kPatience);
  }
};

TEST_F(Slurm, SrunTrainsOverTwoNodesThatShareNothing) {
  SKIP_WITHOUT_SLURM();
  SlurmCluster cluster(folder_->path(), {"n1", "n2"});
  auto [code, said] = cluster.run("srun -N 2 -n 4 lockstep train " +
                                  words("run.folder=/srv/run training.steps=5 --expect-hosts 2"));
  ASSERT_EQ(code, 0) << said;
  expect_says(said, "4 ranks x 1 thread");
  ASSERT_EQ(train("own", 4, "training.steps=5").exit_code, 0);
  const auto here = losses(run("own")), there = losses(cluster.file("n1", "/srv/run"));
  ASSERT_EQ(there.size(), 5u);
  // Sums over two machines are taken in another order.
  for (const auto& [step, loss] : here) EXPECT_NEAR(there.at(step), loss, 1e-4 * loss) << step;
  std::tie(code, said) = cluster.run("srun -N 2 -n 4 lockstep train " +
                                     words("run.folder=/srv/other --expect-hosts 3"));
  EXPECT_EQ(code, 2) << said;
  expect_says(said, "the ranks run on 2 machines, expected were 3");
}

TEST_F(Slurm, TheExampleStartsStopsAtASignalAndGoesOn) {
  SKIP_WITHOUT_SLURM();
  SlurmCluster cluster(folder_->path(), {"n1", "n2"});
  const fs::path run = cluster.file("n1", "/srv/run");
  const std::string long_run = words("training.steps=1500");
  submit(cluster, "", long_run);
  wait_for_steps(run, 20);
  cluster.run("scancel --signal=TERM 1");
  const std::string job = wait_for_state(cluster, "COMPLETED");
  const std::string said = read_file(cluster.file("n1", "/srv/out.txt"));
  expect_says(job, "Restarts=1");
  expect_says(said, "stopped by signal 15 after saving a checkpoint");
  expect_says(said, "resumed from /srv/run/checkpoints/step_");
  ASSERT_EQ(metrics_of(run, "resume").size(), 1u) << said;
  auto [code, text] =
      cluster.run("srun -N 2 -n 2 lockstep train run.folder=/srv/other " + long_run);
  ASSERT_EQ(code, 0) << text;
  EXPECT_EQ(losses(run), losses(cluster.file("n1", "/srv/other"))) << "as if nothing had happened";
  submit(cluster, "--wait", long_run);
  expect_says(read_file(cluster.file("n1", "/srv/out.txt")),
              "/srv/run: the run is finished (steps at step 1,500); nothing is left to do");
}

// A job of one minute, which is Slurm's least; its controller looks every half minute.
TEST_F(Slurm, AJobThatReachesItsTimeLimitGoesOnInTheNext) {
  SKIP_WITHOUT_SLURM();
  SlurmCluster cluster(folder_->path(), {"n1", "n2"});
  const fs::path run = cluster.file("n1", "/srv/run");
  submit(cluster, "--time=1 --signal=TERM@58", words("training.steps=1000000"));
  wait_for_steps(run, 1);
  cluster.wait_until(
      "scontrol show job 1",
      [](const std::string& job) { return job.find("Restarts=1") != std::string::npos; },
      kPatience);
  const auto saved = metrics_of(run, "checkpoint");
  ASSERT_EQ(saved.size(), 1u) << read_file(cluster.file("n1", "/srv/out.txt"));
  const int64_t step = saved.front().at("step");
  wait_for_steps(run, step + 1);
  EXPECT_EQ(metrics_of(run, "end").front().at("reason"), "signal");
  EXPECT_EQ(metrics_of(run, "resume").front().at("first_step"), step + 1);
  cluster.run("scancel 1");
  wait_for_state(cluster, "CANCELLED");
  cluster.wait_until(
      "squeue -h -t all",
      [](const std::string& jobs) { return jobs.find(" CA ") != std::string::npos; }, kPatience);
  expect_says(cluster.run("scontrol show job 1").second, "Restarts=1");
}

TEST_F(Slurm, AKilledRankIsStartedAgainFromTheNewestCheckpoint) {
  SKIP_WITHOUT_SLURM();
  SlurmCluster cluster(folder_->path(), {"n1", "n2"});
  const fs::path run = cluster.file("n1", "/srv/run");
  submit(cluster, "", words("training.steps=900 checkpoint.every=50"));
  wait_for_steps(run, 60);
  ASSERT_EQ(cluster.hosts().run("n2", "pkill -9 -f '[l]ockstep train'").first, 0);
  const std::string job = wait_for_state(cluster, "COMPLETED");
  expect_says(job, "Restarts=1");
  const std::string said = read_file(cluster.file("n1", "/srv/out.txt"));
  expect_says(said, "lost rank 1 on n2");
  ASSERT_EQ(metrics_of(run, "resume").size(), 1u) << said;
  EXPECT_EQ(losses(run).size(), 900u);
}

// Rank 0, the batch script and srun are on the node that is lost: Slurm starts the job again by
// itself, on the other one and a third, which has nothing of the run.
TEST_F(Slurm, ALostNodeIsReplacedAndTheRunGoesOnFromWhatTheOtherHas) {
  SKIP_WITHOUT_SLURM();
  SlurmCluster cluster(folder_->path(), {"n1", "n2", "n3"});
  cluster.run("scontrol update NodeName=n3 State=DRAIN Reason=later");
  submit(cluster, "", words("training.steps=1200 checkpoint.every=50"));
  wait_for_steps(cluster.file("n1", "/srv/run"), 120);
  cluster.run("scontrol update NodeName=n3 State=RESUME");
  cluster.hosts().power_off("n1");
  const std::string job = wait_for_state(cluster, "COMPLETED");
  expect_says(job, "NodeList=n[2-3]");
  const std::string said = read_file(cluster.file("n2", "/srv/out.txt"));
  expect_says(said, "resumed from /srv/run/checkpoints/step_");
  const auto all = losses(cluster.file("n2", "/srv/run"));
  ASSERT_FALSE(all.empty()) << said;
  EXPECT_GT(all.begin()->first, 100) << "the first steps are in the log of the lost node";
  EXPECT_EQ(all.rbegin()->first, 1200);
}

TEST_F(Slurm, WhatIsWrongWithAJobIsOneLine) {
  SKIP_WITHOUT_SLURM();
  SlurmCluster cluster(folder_->path(), {"n1", "n2"});
  const auto output = [&](const char* name) {
    return read_file(cluster.file("n1", fs::path("/srv") / name));
  };
  const auto batch = [&](const std::string& options, const std::string& command) {
    return cluster.run(fmt::format("sbatch --wait -w n1 {} --wrap='{}'", options, command)).first;
  };
  EXPECT_EQ(batch("-n 2 -o /srv/no-srun", "lockstep train " + words("run.folder=/srv/no-srun-run")),
            2);
  expect_says(output("no-srun"),
              "error: SLURM_NTASKS asks for several ranks, but srun did not start this process\n");
  // Slurm's own step of a job for one program may start a second job.
  EXPECT_EQ(batch("-n 1 -o /srv/outer",
                  "srun sbatch --wait -w n1 -n 2 -o /srv/inner --wrap=\"lockstep train " +
                      words("run.folder=/srv/inner-run\"")),
            2);
  expect_says(output("inner"), "error: SLURM_NTASKS asks for several ranks");
  EXPECT_EQ(batch("-n 2 -o /srv/no-tmp --export=ALL,TMPDIR=/srv/absent",
                  "srun lockstep train " + words("run.folder=/srv/no-tmp-run training.steps=3")),
            0)
      << output("no-tmp");
  // The job's second step begins while the first one trains.
  const std::string endless = words("training.steps=1000000 --resume=auto run.folder=/srv/");
  EXPECT_EQ(batch("-n 2 -o /srv/twice",
                  "srun -n 1 --exact lockstep train " + endless +
                      "twice & while ! [ -s /srv/twice/metrics.jsonl ]; do sleep 0.1; done; srun "
                      "-n 1 --exact lockstep train " +
                      endless + "twice; code=$?; scancel $SLURM_JOB_ID.0; wait; exit $code"),
            4);
  expect_says(output("twice"), "/srv/twice: process ");
  expect_says(output("twice"), "error: /srv/twice: another process trains in it\n");
  expect_says(output("twice"), "try: start the job again when its former step has ended");
  cluster.run("sbatch -w n1 -n 1 --array=1-2 -o /srv/array-%a --wrap='srun lockstep train " +
              endless + "array'");
  std::string refused;
  for (int i = 0; i < 600 && refused.empty(); ++i) {
    std::this_thread::sleep_for(100ms);
    for (const char* task : {"array-1", "array-2"}) {
      if (!fs::exists(cluster.file("n1", fs::path("/srv") / task))) continue;
      if (output(task).find("error: ") != std::string::npos) refused = output(task);
    }
  }
  expect_says(refused, "error: /srv/array: another process trains in it\n");
  expect_says(refused, "on n1, job ");
  expect_says(refused, "run.folder=/srv/array-$SLURM_ARRAY_TASK_ID");
}

}  // namespace
}  // namespace lockstep
