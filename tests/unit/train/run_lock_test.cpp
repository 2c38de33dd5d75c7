#include "train/folder/run_lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "support/expect_error.h"
#include "support/expect_says.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

LaunchEnvironment slurm(const std::string& run_id) {
  LaunchEnvironment out;
  out.launcher = "Slurm";
  out.run_id = run_id;
  out.host = "node7";
  return out;
}

class RunLockTest : public ::testing::Test {
 protected:
  void SetUp() override { folder_.make(); }
  template <class Failure>
  std::string refusal(const LaunchEnvironment& environment) {
    try {
      RunLock lock(folder_, environment, milliseconds(20));
    } catch (const Failure& error) {
      return error.describe();
    }
    return "not refused so";
  }
  TemporaryFolder temporary_;
  RunFolder folder_{temporary_.path() / "run"};
};

TEST_F(RunLockTest, SaysWhoTrainsInTheFolder) {
  const RunLock lock(folder_, slurm("7.0"), milliseconds(0));
  EXPECT_EQ(read_file(folder_.lock()), fmt::format("process {} on node7, job 7\n", ::getpid()));
  const std::string text = refusal<ConfigError>(slurm("8.0"));
  expect_says(text, "run: another process trains in it");
  expect_says(text, fmt::format("because: process {} on node7, job 7 holds ", ::getpid()));
  expect_says(text, "another run.folder");
  // A job that Slurm started again may find its former step alive: worth another try.
  expect_says(refusal<MachineError>(slurm("7.1")), "when its former step has ended");
}

TEST_F(RunLockTest, WaitsForAProcessThatEnds) {
  auto former = std::make_unique<RunLock>(folder_, slurm("7.0"), milliseconds(0));
  std::thread end([&] {
    std::this_thread::sleep_for(milliseconds(100));
    former.reset();
  });
  const RunLock lock(folder_, slurm("7.1"), std::chrono::seconds(60));
  end.join();
}

TEST_F(RunLockTest, BelievesOurOwnLauncherThatTheAttemptBeforeIsOver) {
  const RunLock lost(folder_, slurm("7.0"), milliseconds(0));
  LaunchEnvironment again;
  again.launcher = "lockstep";
  again.attempt = 1;
  const RunLock lock(folder_, again, milliseconds(0));
}

}  // namespace
}  // namespace lockstep
