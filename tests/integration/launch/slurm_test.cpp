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
const std::string kEndless = "training.steps=1000000";  // its end is no step's
constexpr double kPatience = 120;                       // seconds; the machine may be busy

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
    const std::vector<nlohmann::json> steps = metrics_of(run, "step");
    return steps.empty() ? 0 : steps.back().at("step").get<int64_t>();
  }
  static void wait_for_steps(const fs::path& run, int64_t steps) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kPatience);
    while (steps_taken(run) < steps) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << run << " is at " << steps_taken(run);
      std::this_thread::sleep_for(10ms);
    }
  }
  // Waits until the run has gone on after its first stop, and some steps further; returns its first
  // step after that, 0 in vain.
  static int64_t wait_for_more_steps(const fs::path& run, int64_t steps = 30) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kPatience);
    while (!fs::exists(run / "metrics.jsonl") || metrics_of(run, "resume").empty()) {
      if (std::chrono::steady_clock::now() > end) return 0;
      std::this_thread::sleep_for(10ms);
    }
    const int64_t first = metrics_of(run, "resume").front().at("first_step");
    wait_for_steps(run, first + steps);
    return first;
  }
  // Ends a run that has more steps to take than any test waits for: how long a step takes here
  // decides nothing.
  static void cancel(SlurmCluster& cluster) {
    cluster.run("scancel 1");
    cluster.wait_until(
        "squeue -h -t all",
        [](const std::string& jobs) { return jobs.find(" CA ") != std::string::npos; }, kPatience);
  }
  // Every step from the first to the last was taken.
  static void expect_no_gap(const std::map<int64_t, double>& losses) {
    ASSERT_FALSE(losses.empty());
    EXPECT_EQ(losses.rbegin()->first - losses.begin()->first + 1,
              static_cast<int64_t>(losses.size()));
  }
  static double unix_now() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  // Keeps how long after a moment the first line of metrics.jsonl of a kind was written, among the
  // test's results (--gtest_output=json).
  static void record(const std::string& name, const fs::path& run, const std::string& event,
                     double since) {
    for (const nlohmann::json& line : metrics_of(run, event)) {
      const double after = line.at("time").get<double>() - since;
      if (after < 0) continue;
      RecordProperty(name + "_seconds", fmt::format("{:.2f}", after));
      return;
    }
  }
  static double resumed_at(const fs::path& run) {
    return metrics_of(run, "resume").front().at("time");
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
  submit(cluster, "", words(kEndless));
  wait_for_steps(run, 20);
  const double signalled = unix_now();
  cluster.run("scancel --signal=TERM 1");
  const int64_t first = wait_for_more_steps(run);
  expect_says(cluster.run("scontrol show job 1").second, "Restarts=1");
  cancel(cluster);
  const std::string said = read_file(cluster.file("n1", "/srv/out.txt"));
  expect_says(said, "stopped by signal 15 after saving a checkpoint");
  expect_says(said, "resumed from /srv/run/checkpoints/step_");
  ASSERT_EQ(metrics_of(run, "resume").size(), 1u) << said;
  record("signal_to_checkpoint", run, "checkpoint", signalled);
  record("signal_to_training", run, "resume", signalled);
  record("training_to_step", run, "step", resumed_at(run));
  const auto taken = losses(run);
  expect_no_gap(taken);
  ASSERT_GT(taken.rbegin()->first, first);
  auto [code, text] = cluster.run("srun -N 2 -n 2 lockstep train run.folder=/srv/other " +
                                  words(fmt::format("training.steps={}", taken.rbegin()->first)));
  ASSERT_EQ(code, 0) << text;
  EXPECT_EQ(taken, losses(cluster.file("n1", "/srv/other"))) << "as if nothing had happened";
  submit(cluster, "--wait", words("training.steps=10"));
  expect_says(read_file(cluster.file("n1", "/srv/out.txt")), "nothing is left to do");
}

// A job of one minute, which is Slurm's least; its controller looks every half minute.
TEST_F(Slurm, AJobThatReachesItsTimeLimitGoesOnInTheNext) {
  SKIP_WITHOUT_SLURM();
  SlurmCluster cluster(folder_->path(), {"n1", "n2"});
  const fs::path run = cluster.file("n1", "/srv/run");
  const double submitted = unix_now();
  submit(cluster, "--time=1 --signal=USR1@58", words(kEndless));
  wait_for_steps(run, 1);
  cluster.wait_until(
      "scontrol show job 1",
      [](const std::string& job) { return job.find("Restarts=1") != std::string::npos; },
      kPatience);
  const auto saved = metrics_of(run, "checkpoint");
  const std::string said = read_file(cluster.file("n1", "/srv/out.txt"));
  ASSERT_EQ(saved.size(), 1u) << said;
  expect_says(said, "stopped by signal 10 after saving a checkpoint");
  const int64_t step = saved.front().at("step");
  record("start_to_checkpoint", run, "checkpoint", submitted);
  wait_for_steps(run, step + 1);
  EXPECT_EQ(metrics_of(run, "end").front().at("reason"), "signal");
  EXPECT_EQ(metrics_of(run, "resume").front().at("first_step"), step + 1);
  cancel(cluster);
  expect_says(cluster.run("scontrol show job 1").second, "Restarts=1");
}

TEST_F(Slurm, AKilledRankIsStartedAgainFromTheNewestCheckpoint) {
  SKIP_WITHOUT_SLURM();
  SlurmCluster cluster(folder_->path(), {"n1", "n2"});
  const fs::path run = cluster.file("n1", "/srv/run");
  submit(cluster, "", words(kEndless + " checkpoint.every=50"));
  wait_for_steps(run, 60);
  const double killed = unix_now();
  ASSERT_EQ(cluster.hosts().run("n2", "pkill -9 -f '[l]ockstep train'").first, 0);
  EXPECT_GT(wait_for_more_steps(run), 50);
  expect_says(cluster.run("scontrol show job 1").second, "Restarts=1");
  cancel(cluster);
  const std::string said = read_file(cluster.file("n1", "/srv/out.txt"));
  expect_says(said, "lost rank 1 on n2");
  ASSERT_EQ(metrics_of(run, "resume").size(), 1u) << said;
  record("kill_to_training", run, "resume", killed);
  expect_no_gap(losses(run));
  EXPECT_EQ(losses(run).begin()->first, 1);
}

// Rank 0, the batch script and srun are on the node that is lost: Slurm starts the job again by
// itself, on the other one and a third, which has nothing of the run.
TEST_F(Slurm, ALostNodeIsReplacedAndTheRunGoesOnFromWhatTheOtherHas) {
  SKIP_WITHOUT_SLURM();
  SlurmCluster cluster(folder_->path(), {"n1", "n2", "n3"});
  cluster.run("scontrol update NodeName=n3 State=DRAIN Reason=later");
  submit(cluster, "", words(kEndless + " checkpoint.every=50"));
  wait_for_steps(cluster.file("n1", "/srv/run"), 120);
  cluster.run("scontrol update NodeName=n3 State=RESUME");
  const double lost = unix_now();
  cluster.hosts().power_off("n1");
  const fs::path rest = cluster.file("n2", "/srv/run");
  const int64_t first = wait_for_more_steps(rest);
  expect_says(cluster.run("scontrol show job 1").second, "NodeList=n[2-3]");
  cancel(cluster);
  const std::string said = read_file(cluster.file("n2", "/srv/out.txt"));
  expect_says(said, "resumed from /srv/run/checkpoints/step_");
  const auto all = losses(rest);
  expect_no_gap(all);
  EXPECT_EQ(all.begin()->first, first);
  EXPECT_GT(first, 100) << "the first steps are in the log of the lost node";
  record("lost_to_training", rest, "resume", lost);
}

class WrongJobs : public Slurm {
 protected:
  void SetUp() override {
    Slurm::SetUp();
    SKIP_WITHOUT_SLURM();
    cluster_ = std::make_unique<SlurmCluster>(folder_->path(), std::vector<std::string>{"n1"});
  }
  void TearDown() override { cluster_.reset(); }
  // Runs a job to its end; its output is in /srv/NAME.out.
  int batch(const std::string& name, const std::string& options, const std::string& command) {
    return cluster_
        ->run(fmt::format("sbatch --wait -o /srv/{}.out {} --wrap='{}'", name, options, command))
        .first;
  }
  // What the job has printed so far.
  std::string output(const std::string& name) const {
    const fs::path file = cluster_->file("n1", fmt::format("/srv/{}.out", name));
    return fs::exists(file) ? read_file(file) : "";
  }
  // A run that only a signal ends.
  std::string endless(const std::string& folder) const {
    return "lockstep train " +
           words("training.steps=100000000 --resume=auto run.folder=/srv/" + folder);
  }
  std::unique_ptr<SlurmCluster> cluster_;
};

TEST_F(WrongJobs, WithoutSrunOrWithTheVariablesOfAnotherJobAreRefused) {
  EXPECT_EQ(batch("alone", "-n 2", "lockstep train " + words("run.folder=/srv/alone")), 2);
  expect_says(output("alone"),
              "error: SLURM_NTASKS asks for several ranks, but srun did not start this process\n");
  // A task of a job submits another job, whose script has the task's variables of a step.
  EXPECT_EQ(
      batch("outer", "-n 1",
            "srun sbatch --wait -n 2 --overcommit -o /srv/inner.out --wrap=\"lockstep train " +
                words("run.folder=/srv/inner\"")),
      2)
      << output("outer");
  expect_says(output("inner"), "SLURM_STEP_NUM_TASKS=1 is of the job that submitted this one");
}

TEST_F(WrongJobs, ThatShareARunFolderAreRefused) {
  // The job's second step begins while the first one trains.
  EXPECT_EQ(batch("twice", "-n 2",
                  "srun -n 1 --exact " + endless("twice") +
                      " & for i in $(seq 600); do [ -s /srv/twice/metrics.jsonl ] && break; sleep "
                      "0.1; done; srun -n 1 --exact " +
                      endless("twice") + "; code=$?; scancel $SLURM_JOB_ID.0; wait; exit $code"),
            4);
  expect_says(output("twice"), "/srv/twice: process ");
  expect_says(output("twice"), "error: /srv/twice: another process trains in it\n");
  expect_says(output("twice"), "try: start the job again when its former step has ended");
  cluster_->run("sbatch -n 1 --array=1-2 -o /srv/array-%a.out --wrap='srun " + endless("array") +
                "'");
  std::string refused;
  for (int i = 0; i < 600 && refused.empty(); ++i) {
    std::this_thread::sleep_for(100ms);
    for (const char* task : {"array-1", "array-2"}) {
      if (output(task).find("error: ") != std::string::npos) refused = output(task);
    }
  }
  expect_says(refused, "error: /srv/array: another process trains in it\n");
  expect_says(refused, "on n1, job ");
  expect_says(refused, "run.folder=/srv/array-$SLURM_ARRAY_TASK_ID");
}

TEST_F(WrongJobs, WithoutATemporaryFolderTrain) {
  EXPECT_EQ(batch("no-tmp", "-n 2 --export=ALL,TMPDIR=/srv/absent",
                  "srun lockstep train " + words("run.folder=/srv/no-tmp training.steps=3")),
            0)
      << output("no-tmp");
}

}  // namespace
}  // namespace lockstep
