// A signal ends a run at once, whatever its ranks do, after a checkpoint from which the run goes on
// as if it had never stopped. The task (tests/support/line_task.h) is slow where it is told to be:
// longer than a test waits.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "support/metadata_server.h"
#include "support/program.h"

extern char** environ;

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

// Polls for a minute.
bool wait_until(const std::function<bool()>& done) {
  const auto start = Clock::now();
  while (!done()) {
    if (seconds_since(start) > 60) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

class StopTest : public ::testing::Test {
 protected:
  // What a stop leaves must come long before what the ranks wait for, and before --grace.
  static constexpr double kLimit = 20;

  void SetUp() override {
    write_file(config(),
               "[task]\nname = \"line\"\n[points]\nbatch = 4\ntrain = 4000\n[batch]\naccumulate = "
               "2\n[optimizer]\n"
               "name = \"sgd\"\nlr = 0.05\n[schedule]\nname = \"fixed\"\n[training]\nsteps = 60\n"
               "[evaluation]\nevery = 20\n[checkpoint]\nevery = 20\nkeep = 9\n"
               "[run]\nprecision = \"fp32\"\n");
  }
  fs::path config() const { return folder_.path() / "line.toml"; }
  fs::path run(const std::string& name) const { return folder_.path() / name; }
  std::string words(const std::string& name, const std::string& more,
                    const std::string& options = "") const {
    return fmt::format("launch -n 2 --grace 60 {} -- train {} run.folder={} {}", options,
                       config().string(), run(name).string(), more);
  }
  void train(const std::string& name, const std::string& more) const {
    const ProgramResult result = run_program(LOCKSTEP_OWN_TASK, words(name, more), kThreads);
    ASSERT_EQ(result.exit_code, 0) << result.errors;
  }

  // Starts a run, lets `end` ask for its end once `due` says so, and expects that in order and
  // time.
  void stop(
      const std::string& name, const std::string& words, const std::function<bool()>& due,
      const std::function<void(pid_t)>& end = [](pid_t launcher) { ::kill(launcher, SIGTERM); }) {
    const std::string output = (folder_.path() / (name + ".out")).string();
    const std::string command = fmt::format("{} exec '{}' {} >'{}' 2>&1 </dev/null", kThreads,
                                            LOCKSTEP_OWN_TASK, words, output);
    const char* argv[] = {"/bin/sh", "-c", command.c_str(), nullptr};
    pid_t process = -1;
    ASSERT_EQ(posix_spawn(&process, argv[0], nullptr, nullptr, const_cast<char**>(argv), environ),
              0);
    const bool came = wait_until(due);
    const auto start = Clock::now();
    end(process);
    int status = 0;
    const bool ended = wait_until([&] { return ::waitpid(process, &status, WNOHANG) == process; });
    const double seconds = seconds_since(start);
    if (!ended) {
      ::kill(process, SIGKILL);  // its ranks end with it
      ::waitpid(process, &status, 0);
    }
    ASSERT_TRUE(came) << read_file(output);
    ASSERT_TRUE(WIFEXITED(status)) << read_file(output);
    EXPECT_EQ(WEXITSTATUS(status), 143) << read_file(output);
    EXPECT_LT(seconds, kLimit);
    fmt::print("  {}: {:.2f} s to the end\n", name, seconds);
  }
  nlohmann::json live(const std::string& name) const {
    if (!fs::exists(run(name) / "live.json")) return {};
    return nlohmann::json::parse(read_file(run(name) / "live.json"), nullptr, false);
  }
  // Whether a rank is in that phase of a step after `step`.
  bool is_in(const std::string& name, const std::string& phase, int64_t step) const {
    const nlohmann::json now = live(name);
    if (!now.is_object()) return false;
    for (const nlohmann::json& rank : now.value("ranks", nlohmann::json::array())) {
      if (rank.value("phase", "") == phase && rank.value("step", int64_t{0}) >= step) return true;
    }
    return false;
  }
  bool saved(const std::string& name, int64_t step) const {
    return fs::exists(run(name) / "checkpoints" / fmt::format("step_{}", step) / "DONE");
  }
  std::string weights(const std::string& name) const {
    return read_file(run(name) / "checkpoints" / "step_60" / "weights.safetensors");
  }
  // The run that goes on ends with the same bits, and each evaluation was made once.
  void expect_exact(const std::string& name) {
    if (!saved("whole", 60)) train("whole", "");
    train(name, "--resume points.late_step=0 points.evaluation_seconds=0 points.step_seconds=0");
    EXPECT_EQ(weights(name), weights("whole"));
    std::vector<double> found, expected;
    for (const nlohmann::json& e : metrics_of(run(name), "evaluation"))
      found.push_back(e["eval/loss"]);
    for (const nlohmann::json& e : metrics_of(run("whole"), "evaluation")) {
      expected.push_back(e["eval/loss"]);
    }
    EXPECT_EQ(found, expected);
  }

  static constexpr const char* kThreads = "OMP_NUM_THREADS=1";
  inline static TemporaryFolder folder_;  // of all tests, which compare with one whole run
};

TEST_F(StopTest, WhileARankWaitsForItsData) {
  stop("data", words("data", "points.late_step=31 points.late_seconds=300"),
       [&] { return is_in("data", "data", 31); });
  EXPECT_TRUE(saved("data", 30));  // the step without its batch was given up
  expect_exact("data");
}

TEST_F(StopTest, InAStepBetweenItsMicroBatches) {
  stop("step", words("step", "points.step_seconds=2"), [&] { return is_in("step", "forward", 2); });
  expect_exact("step");
}

TEST_F(StopTest, InAnEvaluationThatIsMadeAgain) {
  // The checkpoint that is due comes first.
  stop("evaluation", words("evaluation", "points.evaluation_seconds=3"),
       [&] { return saved("evaluation", 20) && is_in("evaluation", "evaluation", 20); });
  EXPECT_TRUE(metrics_of(run("evaluation"), "evaluation").empty());
  expect_exact("evaluation");
}

TEST_F(StopTest, WhileCheckpointsAreWritten) {
  stop("checkpoint",
       words("checkpoint", "checkpoint.every=1 checkpoint.keep=99 points.step_seconds=0.02"),
       [&] { return saved("checkpoint", 5); });
  const int64_t last = metrics_of(run("checkpoint"), "step").back().at("step");
  EXPECT_TRUE(saved("checkpoint", last));
  expect_exact("checkpoint");
}

// A meeting that is planned for later than the test waits comes at once.
TEST_F(StopTest, LongBeforeTheGroupsMeet) {
  const std::string often =
      "training.steps=100000 comm.strategy=diloco comm.local_steps=50000 comm.local_after=10 ";
  stop("meeting", words("meeting", often + "points.step_seconds=0.02"),
       [&] { return is_in("meeting", "forward", 20); });
  const auto meetings = metrics_of(run("meeting"), "meeting");
  ASSERT_EQ(meetings.size(), 1u);
  EXPECT_TRUE(saved("meeting", meetings[0].at("step")));
  const std::string twice = fmt::format("--resume {} training.steps={}", often,
                                        meetings[0].at("step").get<int64_t>() + 5);
  train("meeting", twice);
}

TEST_F(StopTest, BeforeTheCloudTakesTheMachine) {
  MetadataServer cloud;
  cloud.answer("api/token", 200, "token");
  ::setenv("LOCKSTEP_METADATA", cloud.url().c_str(), 1);
  stop(
      "spot", words("spot", "points.step_seconds=0.02 training.steps=100000", "--spot aws"),
      [&] { return is_in("spot", "forward", 20); },
      [&](pid_t) {
        const std::time_t then = std::time(nullptr) + 40;
        std::tm parts{};
        char text[32];
        std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", ::gmtime_r(&then, &parts));
        cloud.answer("instance-action", 200,
                     fmt::format(R"({{"action": "terminate", "time": "{}"}})", text));
      });
  ::unsetenv("LOCKSTEP_METADATA");
  const int64_t last = metrics_of(run("spot"), "step").back().at("step");
  EXPECT_TRUE(saved("spot", last));
  const std::string events = read_file(run("spot") / "launch.jsonl");
  EXPECT_NE(events.find(R"("cloud":"aws","action":"terminate","deadline":)"), std::string::npos)
      << events;
}

TEST_F(StopTest, WhileTheDataIsOpened) {
  stop("opened", words("opened", "points.open_seconds=300"),
       [&] { return fs::exists(run("opened") / "config.toml"); });
  train("opened", "--resume=auto points.open_seconds=0");
  if (!saved("whole", 60)) train("whole", "");
  EXPECT_EQ(weights("opened"), weights("whole"));
}

}  // namespace
}  // namespace lockstep
