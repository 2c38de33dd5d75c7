// Sweeps of tiny runs by the built program: cells beside each other, one that fails, a sweep that
// is killed and goes on, time limits, signals, what is compared after.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "report/run/sweep_cell.h"
#include "support/tiny_runs.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;

class SweepRuns : public TinyRuns {
 protected:
  // Writes a sweep over tiny.toml; its folder is run(name).
  std::string write_sweep(const std::string& name, const std::string& more) const {
    const fs::path file = folder_->path() / (name + ".toml");
    write_file(file, fmt::format("[sweep]\nbase = 'tiny.toml'\nfolder = '{}'\nthreads = 1\n{}",
                                 run(name).string(), more));
    return file.string();
  }

  CellRecord cell(const std::string& sweep, const std::string& name) const {
    return read_cell(SweepFolder{run(sweep)}, name).value();
  }

  // Starts a sweep and returns its process, once `ready` holds.
  template <typename Ready>
  pid_t start(const std::string& file, const Ready& ready) const {
    pid_t pid = ::fork();
    if (pid == 0) {
      const std::string log = (folder_->path() / "sweep.log").string();
      if (std::freopen(log.c_str(), "a", stdout) == nullptr) ::_exit(1);
      if (std::freopen(log.c_str(), "a", stderr) == nullptr) ::_exit(1);
      ::execl(LOCKSTEP_PROGRAM, LOCKSTEP_PROGRAM, "sweep", file.c_str(), nullptr);
      ::_exit(127);
    }
    const auto limit = std::chrono::steady_clock::now() + 60s;
    while (!ready() && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(20ms);
    return pid;
  }

  static bool has_checkpoint(const fs::path& run) {
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(run / "checkpoints", failed)) {
      if (fs::exists(entry.path() / "DONE")) return true;
    }
    return false;
  }

  static int wait_for(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
};

TEST_F(SweepRuns, CellsSideBySideGiveATableAndPlots) {
  const std::string file =
      write_sweep("grid",
                  "setups = ['1x1', '1x2']\noversubscribe = true\nat_once = 2\n[set]\n"
                  "'training.epochs' = 2\n'training.steps' = 0\n'evaluation.every_epochs' = 1\n"
                  "'evaluation.metrics' = ['nll']\n[grid]\n'batch.tokens' = [256, 512]\n");
  ProgramResult result = run_lockstep("sweep " + file);
  ASSERT_EQ(result.exit_code, 0) << result.errors << result.output;
  EXPECT_NE(result.errors.find("4 done"), std::string::npos) << result.errors;
  EXPECT_NE(result.output.find("tokens  set-up  runs  best nll"), std::string::npos)
      << result.output;
  EXPECT_NE(result.output.find("efficiency"), std::string::npos) << result.output;
  auto json = nlohmann::json::parse(read_file(run("grid") / "results.json"));
  EXPECT_EQ(json["groups"].size(), 4u);
  EXPECT_EQ(json["groups"][3]["ranks"], 2);
  EXPECT_GT(json["groups"][3]["figures"]["epoch_seconds"]["mean"], 0);

  // Done is done.
  ProgramResult again = run_lockstep("sweep " + file);
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_EQ(again.errors.find("starts"), std::string::npos) << again.errors;
  EXPECT_EQ(cell("grid", "tokens-256_1x1_seed-1").attempts, 1);

  ProgramResult compared =
      run_lockstep(fmt::format("compare {} --out {}", run("grid").string(), run("page").string()));
  ASSERT_EQ(compared.exit_code, 0) << compared.errors;
  const std::string page = read_file(run("page") / "compare.html");
  for (const char* figure : {"epoch-time-batch-tokens", "nll-epoch", "speed-up"}) {
    EXPECT_NE(page.find(fmt::format("<figure id=\"{}\"", figure)), std::string::npos) << figure;
    EXPECT_TRUE(fs::exists(run("page") / "figures" / fmt::format("{}.svg", figure)));
  }
  const bool rasteriser = std::system("command -v rsvg-convert >/dev/null") == 0;
  const fs::path png = run("page") / "figures/speed-up.png";
  ASSERT_EQ(fs::exists(png), rasteriser);
  if (rasteriser) {
    EXPECT_EQ(read_file(png).substr(0, 4), "\x89PNG");
    EXPECT_NE(page.find("data:image/png;base64,"), std::string::npos);
  } else {
    EXPECT_NE(compared.errors.find("no PNG"), std::string::npos);
  }
}

TEST_F(SweepRuns, AFailedCellEndsNoOthersAndIsTriedAgain) {
  const std::string corpus = (folder_->path() / "corpus").string();
  const std::string file = write_sweep(
      "failing", fmt::format("[grid]\n'data.corpus' = ['{}', '{}']\n'training.steps' = [3]\n",
                             run("later").string(), corpus));
  ProgramResult result = run_lockstep("sweep " + file);
  EXPECT_EQ(result.exit_code, 3) << result.errors;
  EXPECT_NE(result.errors.find("1 done, 1 failed"), std::string::npos) << result.errors;
  EXPECT_NE(result.output.find("failed"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("later"), std::string::npos) << "the reason: " << result.output;

  fs::copy(corpus, run("later"), fs::copy_options::recursive);
  result = run_lockstep("sweep " + file);
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_NE(result.errors.find("2 done"), std::string::npos) << result.errors;
}

TEST_F(SweepRuns, KilledItGoesOnWhereItWas) {
  const std::string file = write_sweep("killed",
                                       "[set]\n'checkpoint.every' = 5\n'training.steps' = "
                                       "300\n[grid]\n'optimizer.lr' = [1e-3, 1e-4]\n");
  const fs::path second = SweepFolder{run("killed")}.run("lr-0.0001_1x1_seed-1");
  const pid_t pid = start(file, [&] { return has_checkpoint(second); });
  ::kill(pid, SIGKILL);
  EXPECT_EQ(wait_for(pid), 128 + SIGKILL);
  EXPECT_EQ(cell("killed", "lr-0.001_1x1_seed-1").state, "done");
  EXPECT_EQ(cell("killed", "lr-0.0001_1x1_seed-1").state, "running");

  ProgramResult result = run_lockstep("sweep " + file);
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_NE(result.errors.find("lr-0.0001_1x1_seed-1: goes on"), std::string::npos)
      << result.errors;
  EXPECT_EQ(cell("killed", "lr-0.001_1x1_seed-1").attempts, 1);
  EXPECT_EQ(cell("killed", "lr-0.0001_1x1_seed-1").attempts, 2);
  EXPECT_EQ(metrics_of(second, "resume").size(), 1u);
  EXPECT_EQ(metrics_of(second, "end").size(), 1u);
}

TEST_F(SweepRuns, ASignalSavesAndStopsAndTwoSweepsAreRefused) {
  const std::string file = write_sweep(
      "stopped", "[set]\n'training.steps' = 100000\n[grid]\n'optimizer.lr' = [1e-3, 1e-4]\n");
  const SweepFolder sweep{run("stopped")};
  const fs::path metrics = sweep.run("lr-0.001_1x1_seed-1") / "metrics.jsonl";
  const pid_t pid =
      start(file, [&] { return fs::exists(metrics) && fs::file_size(metrics) > 500; });
  ProgramResult other = run_lockstep("sweep " + file);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.errors.find("another sweep works in this folder"), std::string::npos)
      << other.errors;
  ::kill(pid, SIGINT);
  EXPECT_EQ(wait_for(pid), 128 + SIGINT);
  EXPECT_EQ(cell("stopped", "lr-0.001_1x1_seed-1").state, "stopped");
  EXPECT_EQ(cell("stopped", "lr-0.0001_1x1_seed-1").state, "waiting");
  EXPECT_FALSE(fs::is_empty(sweep.run("lr-0.001_1x1_seed-1") / "checkpoints"));

  // A limit of 1.2 seconds, and what was stopped goes on.
  ProgramResult limited = run_lockstep("sweep " + file + " sweep.cell_minutes=0.02");
  EXPECT_EQ(limited.exit_code, 4) << limited.errors;
  EXPECT_NE(limited.errors.find("did not end within 0.02 minutes"), std::string::npos)
      << limited.errors;
  EXPECT_EQ(cell("stopped", "lr-0.0001_1x1_seed-1").state, "time limit");
  EXPECT_EQ(cell("stopped", "lr-0.001_1x1_seed-1").attempts, 2);
}

}  // namespace
}  // namespace lockstep
