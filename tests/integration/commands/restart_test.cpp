// Runs that are killed and go on: what the launcher, the checkpoints and the data order must do
// together.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "support/tiny_runs.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RestartTest : public TinyRuns {
 protected:
  // `lockstep launch OPTIONS -- train ...` in the background.
  pid_t begin(const std::string& name, const std::string& options, const std::string& words) {
    std::string command = fmt::format(
        "OMP_NUM_THREADS=1 exec timeout -k 5 90 '{}' launch {} -- train {}/tiny.toml "
        "run.folder={} {} >'{}' 2>&1 </dev/null",
        LOCKSTEP_PROGRAM, options, folder_->path().string(), run(name).string(), words,
        said(name).string());
    pid_t pid = ::fork();
    if (pid == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    return pid;
  }
  fs::path said(const std::string& name) const { return folder_->path() / (name + ".out"); }
  int exit_code_of(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);  // `timeout` bounds it
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  bool wait_until(const std::function<bool()>& done) {
    auto until = std::chrono::steady_clock::now() + seconds(60);
    while (!done()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return true;
  }
  bool reached(const std::string& name, const std::string& checkpoint) {
    return wait_until([&] { return fs::exists(run(name) / "checkpoints" / checkpoint / "DONE"); });
  }

  // The process of a rank of this run, by its environment and arguments.
  pid_t rank_of(const std::string& name, int rank) {
    std::string variable = fmt::format("LOCKSTEP_RANK={}", rank);
    std::string argument = "run.folder=" + run(name).string();
    for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
      std::string number = entry.path().filename().string();
      if (number.find_first_not_of("0123456789") != std::string::npos) continue;
      try {
        if (has_entry(entry.path() / "environ", variable) &&
            has_entry(entry.path() / "cmdline", argument)) {
          return std::stoi(number);
        }
      } catch (const Error&) {  // it has just ended
      }
    }
    throw std::runtime_error("no such rank");  // not -1: a signal to that goes to all processes
  }
  static bool has_entry(const fs::path& file, const std::string& wanted) {
    for (const std::string& entry : split(read_file(file), '\0')) {
      if (entry == wanted) return true;
    }
    return false;
  }

  std::vector<nlohmann::json> events(const std::string& name, const std::string& kind) {
    std::vector<nlohmann::json> out;
    for (const std::string& line : read_lines(run(name) / "launch.jsonl")) {
      nlohmann::json json = nlohmann::json::parse(line);
      if (json.at("event") == kind) out.push_back(json);
    }
    return out;
  }
  std::string weights_hash(const std::string& name, int step) const {
    return sha256_of_file(run(name) / "checkpoints" / fmt::format("step_{}", step) /
                          "weights.safetensors");
  }
};

TEST_F(RestartTest, AKilledRankCostsStepsButChangesNoBit) {
  const std::string words = "training.steps=1000 checkpoint.every=100 training.progress_every=500";
  pid_t launcher = begin("killed", "-n 2 --restarts 1", words);
  ASSERT_TRUE(reached("killed", "step_200")) << read_file(said("killed"));
  pid_t rank = rank_of("killed", 1);
  ::kill(rank, SIGKILL);
  EXPECT_EQ(exit_code_of(launcher), 0) << read_file(said("killed"));
  std::string console = read_file(said("killed"));
  EXPECT_NE(console.find("rank 1 was killed by SIGKILL"), std::string::npos) << console;
  EXPECT_NE(console.find("resumed from"), std::string::npos) << console;
  auto first_steps = events("killed", "first_step");
  ASSERT_EQ(first_steps.size(), 2u);
  EXPECT_EQ(first_steps[1].at("attempt"), 1);
  // Below 2 s on idle cores (docs/launch.md#what-a-failure-costs); busy ones get time.
  EXPECT_LT(first_steps[1].at("seconds").get<double>(), 20);
  RecordProperty("seconds_to_next_step", first_steps[1].at("seconds").dump());
  ASSERT_EQ(train("whole", 2, words).exit_code, 0);
  EXPECT_EQ(weights_hash("killed", 1000), weights_hash("whole", 1000));
}

// Checkpoints are written beside the steps. Rank 0 is killed while it writes one, each time a
// little later: what is complete is whole, and the run goes on from there.
TEST_F(RestartTest, AKillWhileACheckpointIsWrittenLeavesTheOneBefore) {
  const std::string words =
      "training.steps=48 checkpoint.every=3 model.d_model=256 model.feed_forward=1024 run.seed=3";
  constexpr int kKills = 5;
  pid_t launcher = begin("writing", fmt::format("-n 2 --restarts {}", kKills), words);
  const auto is_writing = [&](int after) {
    std::error_code none;
    for (fs::directory_iterator at(run("writing") / "checkpoints", none), end; !none && at != end;
         at.increment(none)) {
      const fs::path name = at->path().filename();
      if (name.extension() == ".part" && std::stoi(name.string().substr(5)) > after) return true;
    }
    return false;
  };
  for (int kill = 0; kill < kKills; ++kill) {
    ASSERT_TRUE(wait_until([&] { return is_writing(6 * kill + 3); })) << read_file(said("writing"));
    std::this_thread::sleep_for(milliseconds(3 * kill));
    const pid_t rank = rank_of("writing", 0);
    ::kill(rank, SIGKILL);
    ASSERT_TRUE(wait_until([&] {
      return events("writing", "first_step").size() > static_cast<std::size_t>(kill) + 1;
    })) << read_file(said("writing"));
  }
  EXPECT_EQ(exit_code_of(launcher), 0) << read_file(said("writing"));
  const std::string console = read_file(said("writing"));
  EXPECT_EQ(console.find("another hash"), std::string::npos) << console;
  EXPECT_EQ(console.find("is missing"), std::string::npos) << console;
  ASSERT_EQ(train("together", 2, words + " checkpoint.background=false").exit_code, 0);
  EXPECT_EQ(weights_hash("writing", 48), weights_hash("together", 48));
}

TEST_F(RestartTest, ARankThatIsAskedToStopStopsAllAfterACheckpoint) {
  const std::string words = "training.steps=100000 checkpoint.every=50 checkpoint.keep=1";
  pid_t launcher = begin("asked", "-n 2 --restarts 3", words);
  ASSERT_TRUE(reached("asked", "step_50")) << read_file(said("asked"));
  ::kill(rank_of("asked", 1), SIGTERM);
  EXPECT_EQ(exit_code_of(launcher), 143);
  std::string console = read_file(said("asked"));
  EXPECT_NE(console.find("a rank got SIGTERM: all ranks save a checkpoint"), std::string::npos)
      << console;
  EXPECT_EQ(events("asked", "reclaimed").size(), 1u);
  int64_t last = metrics_of(run("asked"), "step").back().at("step");
  EXPECT_TRUE(fs::exists(run("asked") / "checkpoints" / fmt::format("step_{}", last) / "DONE"));
}

TEST_F(RestartTest, MistakesOfTheConfigurationAreNotRepeated) {
  ProgramResult result = run_lockstep(fmt::format(
      "launch -n 2 --restarts 3 -- train {}/tiny.toml run.folder={} data.corpus=/no/such/corpus",
      folder_->path().string(), run("mistaken").string()));
  EXPECT_EQ(result.exit_code, 3) << result.errors;
  EXPECT_EQ(result.errors.find("attempt 1"), std::string::npos) << result.errors;
}

TEST_F(RestartTest, AnotherAttemptDoesNotTouchTheFolderOfAnotherJob) {
  ASSERT_EQ(train("other", 1, "training.steps=2").exit_code, 0);
  ProgramResult result = train("other", 1, "training.steps=4",
                               "LOCKSTEP_RANK=0 LOCKSTEP_SIZE=1 LOCKSTEP_LOCAL_RANK=0 "
                               "LOCKSTEP_LOCAL_SIZE=1 LOCKSTEP_ATTEMPT=1 LOCKSTEP_RUN_ID=mine");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.errors.find("holds another run than the one that starts again"),
            std::string::npos)
      << result.errors;
}

}  // namespace
}  // namespace lockstep
