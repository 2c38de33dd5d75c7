// Ranks whose tensors are on a device that is not the CPU (tests/support/test_device.h): what they
// exchange, and what happens when a device or an operation fails.
#include "support/placement.h"
#include "support/ranks_apart.h"
#include "support/tiny_corpus.h"
#include "support/tiny_images.h"

namespace lockstep {
namespace {

class PlacementOfRanks : public Placement {
 protected:
  void SetUp() override {
    Placement::SetUp();
    ASSERT_EQ(make_tiny_corpus(folder_.path()), "");
    write_tiny_config(folder_.path());
  }
};

// Ranks with a device each; in place of NCCL, Gloo on copies.
TEST_P(PlacementOfRanks, OfTwoRanks) {
  if (on_gpu()) GTEST_SKIP() << "needs two GPUs";
  launched_ = "launch -n 2 -- ";
  expect_equal_runs("training.shard_optimizer=true comm.bucket_megabytes=0.05");
}

// NCCL refuses ranks that share a GPU; their sums are the CPUs', over shared memory.
TEST_P(PlacementOfRanks, OfTwoRanksThatShareADevice) {
  launched_ = "launch -n 2 -- ";
  devices_ = "LOCKSTEP_TEST_DEVICES=1";
  const ProgramResult refused = there(train("refused", words_there()));
  if (!on_gpu()) {
    EXPECT_EQ(refused.exit_code, 4) << refused.errors;
    EXPECT_NE(refused.errors.find("2 ranks on this host but 1 usable GPU"), std::string::npos)
        << refused.errors;
  }
  expect_equal_runs(
      "comm.gpu_exchange=host training.shard_optimizer=true comm.bucket_megabytes=0.05");
}

// NCCL's operations end when they fail, and the host learns of it later: no step may be taken with
// what they left.
TEST_P(PlacementOfRanks, AnOperationThatFailsOnADeviceEndsTheStep) {
  if (on_gpu()) GTEST_SKIP() << "a test of the test device";
  launched_ = "launch -n 2 -- ";
  const ProgramResult r = run_program(
      LOCKSTEP_ON_TEST_DEVICE, train("run", words_there() + "training.steps=20 checkpoint.every=1"),
      "OMP_NUM_THREADS=1 LOCKSTEP_TEST_DEVICE_FAILS=12");
  EXPECT_EQ(r.exit_code, 4) << r.errors;
  EXPECT_NE(r.errors.find("the link of the device is down"), std::string::npos) << r.errors;
  EXPECT_NE(r.errors.find("rank 1"), std::string::npos) << r.errors;
  EXPECT_NE(r.errors.find("gradient bucket"), std::string::npos) << r.errors;
  const auto steps = metrics_of(run("run"), "step"), saved = metrics_of(run("run"), "checkpoint");
  EXPECT_LT(steps.size(), 20u);
  EXPECT_LE(saved.size(), steps.size()) << "the step that failed was not kept";
}

// What fails is the machine, so the job goes on from its newest checkpoint.
TEST_P(PlacementOfRanks, ADeviceThatFailsIsAFailureOfTheMachine) {
  if (on_gpu()) GTEST_SKIP() << "a test of the test device";
  const std::string words = words_there() + "training.steps=12 checkpoint.every=1";
  devices_ = fmt::format("LOCKSTEP_TEST_DEVICE_BREAKS={}", GetParam() ? 350 : 8);
  const ProgramResult once = there(train("once", words));
  EXPECT_EQ(once.exit_code, 4) << once.errors;
  EXPECT_NE(
      once.errors.find("error: a GPU failed\n  because: CUDA error: an illegal memory access was "
                       "encountered\n  try: start again"),
      std::string::npos)
      << once.errors;
  EXPECT_EQ(once.errors.find("CUDA_LAUNCH_BLOCKING"), std::string::npos) << once.errors;
  launched_ = "launch -n 2 --restarts 1 -- ";
  const ProgramResult again = there(train("again", words));
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_NE(again.errors.find("an illegal memory access was encountered"), std::string::npos)
      << again.errors;
  EXPECT_EQ(metrics_of(run("again"), "step").size(), 12u);
}

// One of several machines whose driver does not work: the others would wait for it in NCCL.
TEST_P(PlacementOfRanks, ARankWithoutADeviceIsNamed) {
  if (on_gpu()) GTEST_SKIP() << "a test of the test device";
  for (const bool exchanged_by_host : {false, true}) {
    const ProgramResult r =
        train_apart({folder_.path(), folder_.path()},
                    fmt::format("tiny.toml run.folder=run run.device=auto comm.gpu_exchange={}",
                                exchanged_by_host ? "host" : "nccl"),
                    60, "env LOCKSTEP_TEST_DEVICES=0", LOCKSTEP_ON_TEST_DEVICE);
    EXPECT_EQ(r.exit_code, 4) << r.errors;
    EXPECT_NE(r.errors.find("computes on its CPU\n  because: no NVIDIA driver"), std::string::npos)
        << r.errors;
    fs::remove_all(folder_.path() / "run");
  }
}

// What is done to gradients, or to weights at a meeting, on their way between ranks.
class PlacementOfExchange : public PlacementOfRanks {
 protected:
  void expect_equal_exchange(const std::string& words, double later, double first = 1e-5) {
    launched_ = "launch -n 2 -- ";
    devices_ = "LOCKSTEP_TEST_DEVICES=1";
    expect_equal_runs("comm.gpu_exchange=host " + words, later, first);
  }
};

TEST_P(PlacementOfExchange, InBf16) { expect_equal_exchange("comm.hook=bf16", 1e-2); }

TEST_P(PlacementOfExchange, ByPowerSgd) {
  expect_equal_exchange("comm.hook=powersgd comm.powersgd.start_step=4", 1e-2);
}

// Batch norms that share their statistics: sums of both directions go from device to device.
TEST_P(PlacementOfExchange, OfStatistics) {
  write_tiny_images(folder_.path() / "data");
  write_tiny_image_config(folder_.path() / "tiny.toml", folder_.path() / "data");
  expect_equal_exchange("model.width=16 model.sync_batch_norm=true optimizer.lr=1e-5", 2e-2, 2e-2);
}

TEST_P(PlacementOfExchange, AtMeetings) {
  expect_equal_exchange("comm.strategy=diloco comm.local_after=4 comm.local_steps=5", 1e-2);
}

INSTANTIATE_TEST_SUITE_P(By, PlacementOfRanks, ::testing::Bool(), kind_of_kernels);
INSTANTIATE_TEST_SUITE_P(By, PlacementOfExchange, ::testing::Values(true), kind_of_kernels);

}  // namespace
}  // namespace lockstep
