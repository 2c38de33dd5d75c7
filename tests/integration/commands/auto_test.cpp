// What the program chooses by itself: ranks (launch -n auto) and precision (run.precision = auto).
#include <gtest/gtest.h>

#include "kernels/kernel_table.h"
#include "kernels/number_formats.h"
#include "support/expect_says.h"
#include "support/tiny_runs.h"

namespace lockstep {
namespace {

class AutoTest : public TinyRuns {
 protected:
  static constexpr const char* kShort = "training.steps=2 evaluation.every=0 ";

  std::string log_of(const std::string& name, int rank = 0) const {
    return read_file(run(name) / fmt::format("logs/rank{:02}.log", rank));
  }
  std::string config_of(const std::string& name) const {
    return read_file(run(name) / "config.toml");
  }
  std::string launch_auto(const std::string& before, const std::string& words = "") const {
    const ProgramResult result =
        run_lockstep("launch -n auto --program true " + words, "env -u OMP_NUM_THREADS " + before);
    EXPECT_EQ(result.exit_code, 0);
    return result.errors;
  }
  static bool fast_here() { return cpu_formats(kernels().isa, kernels().fast_bf16).bf16; }
  static bool has_driver() { return fs::exists("/proc/driver/nvidia/version"); }
};

TEST_F(AutoTest, OnOneCoreOneRankIsStarted) {
  if (has_driver()) GTEST_SKIP() << "this machine has GPUs";
  EXPECT_EQ(launch_auto("taskset -c 0"), "lockstep launch: 1 rank x 1 thread: 1 core\n");
}

TEST_F(AutoTest, GpusThatCannotBeUsedAreSaid) {
  if (has_driver()) GTEST_SKIP() << "this machine has GPUs";
  expect_says(launch_auto(std::string("taskset -c 0 env LOCKSTEP_NVML=") + LOCKSTEP_FAKE_NVML),
              "1 rank x 1 thread: 1 core; 2 GPUs, but none can be used: no NVIDIA driver");
}

TEST_F(AutoTest, ThreadsAreThoseOfTheEnvironment) {
  if (has_driver()) GTEST_SKIP() << "this machine has GPUs";
  expect_says(launch_auto("taskset -c 0", "-x OMP_NUM_THREADS=3"),
              "1 rank x 3 threads: 1 core; OMP_NUM_THREADS=3");
}

TEST_F(AutoTest, AnOlderProgramThatClusterSetupLeftHereIsNotAsked) {
  if (has_driver()) GTEST_SKIP() << "this machine has GPUs";
  const fs::path home = folder_->path() / "home", left = home / ".lockstep/current";
  fs::create_directories(left);
  write_file(left / "lockstep", "#!/bin/sh\nexit 1\n");
  fs::permissions(left / "lockstep", fs::perms::owner_all);
  expect_says(launch_auto("taskset -c 0 env HOME=" + home.string()), "1 rank x 1 thread: 1 core");
}

TEST_F(AutoTest, RanksOfATrainingRunAreChosenToo) {
  const ProgramResult result =
      run_lockstep(fmt::format("launch -n auto -- train {}/tiny.toml run.folder={} {}",
                               folder_->path().string(), run("chosen").string(), kShort),
                   "taskset -c 0");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  expect_says(result.errors, "lockstep launch: 1 rank x 1 thread: 1 core");
  expect_says(log_of("chosen"), "1 rank x 1 thread on cpu");
}

TEST_F(AutoTest, PrecisionIsSettledOnceAndKeptWhereTheRunGoesOn) {
  const bool low = fast_here();
  ASSERT_EQ(train("kept", 1, std::string(kShort) + "run.precision=auto").exit_code, 0);
  expect_says(log_of("kept"), low ? "bf16 (auto: this CPU has a" : "fp32 (auto: this CPU");
  expect_says(config_of("kept"), low ? "precision = \"bf16\"" : "precision = \"fp32\"");
  // Elsewhere, on a CPU that computes fp32 alone.
  const ProgramResult resumed =
      train("kept", 1, "training.steps=3 evaluation.every=0 run.precision=auto --resume",
            "OMP_NUM_THREADS=1 LOCKSTEP_ISA=avx2");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.errors;
  expect_says(log_of("kept"), low ? "bf16 (auto: as the run began)" : "fp32 (auto: as the run");
  if (low) expect_says(log_of("kept"), "bf16 is slow here: this CPU (avx2) has neither");
  expect_says(config_of("kept"), low ? "precision = \"bf16\"" : "precision = \"fp32\"");
}

TEST_F(AutoTest, PrecisionIsThatOfTheWeakestRank) {
  const fs::path script = folder_->path() / "rank.sh";
  write_file(
      script,
      fmt::format("[ $LOCKSTEP_RANK = 0 ] || export LOCKSTEP_ISA=avx2\n"
                  "exec '{}' train {}/tiny.toml run.folder={} run.precision=auto {}\n",
                  LOCKSTEP_PROGRAM, folder_->path().string(), run("mixed").string(), kShort));
  const ProgramResult result = run_lockstep(
      fmt::format("launch -n 2 --program sh -- {}", script.string()), "OMP_NUM_THREADS=1");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  expect_says(config_of("mixed"), "precision = \"fp32\"");
  if (!fast_here()) return;  // then both are alike
  expect_says(log_of("mixed"), "fp32 (auto: rank 1 on ");
  expect_says(log_of("mixed"), ": this CPU (avx2) has neither avx512_bf16 nor amx_bf16)");
}

TEST_F(AutoTest, AnExplicitPrecisionStays) {
  ASSERT_EQ(train("explicit", 1, std::string(kShort) + "run.precision=bf16",
                  "OMP_NUM_THREADS=1 LOCKSTEP_ISA=avx2")
                .exit_code,
            0);
  expect_says(config_of("explicit"), "precision = \"bf16\"");
  expect_says(log_of("explicit"), "bf16 is slow here");
}

}  // namespace
}  // namespace lockstep
