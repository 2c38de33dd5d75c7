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

}  // namespace
}  // namespace lockstep
