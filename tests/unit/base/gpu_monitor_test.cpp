#include "base/gpu_monitor.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/host_usage.h"

namespace lockstep {
namespace {

// The library of tests/support/fake_nvml.cpp, in one of its modes.
class FakeNvml {
 public:
  explicit FakeNvml(const char* mode = "") { setenv("FAKE_NVML", mode, 1); }
  ~FakeNvml() { unsetenv("FAKE_NVML"); }
};

TEST(GpuMonitor, TellsWhatTheDriverTells) {
  FakeNvml mode;
  GpuMonitor monitor(LOCKSTEP_FAKE_NVML);
  ASSERT_EQ(monitor.count(), 2);
  monitor.sample(1);
  const auto gpus = monitor.sample(1);
  const GpuFigures& gpu = gpus[0];
  EXPECT_STREQ(gpu.name, "Invented GPU");
  EXPECT_FLOAT_EQ(gpu.use, 0.87F);
  EXPECT_FLOAT_EQ(gpu.memory_use, 0.41F);
  EXPECT_EQ(gpu.memory_bytes, 16'000'000'000);
  EXPECT_EQ(gpu.memory_used_bytes, 12'000'000'000);
  EXPECT_FLOAT_EQ(gpu.watts, 61.5F);
  EXPECT_FLOAT_EQ(gpu.limit_watts, 70);
  EXPECT_DOUBLE_EQ(gpu.joules, 120) << "60 J between two questions";
  EXPECT_FLOAT_EQ(gpu.temperature, 64);
  EXPECT_FLOAT_EQ(gpu.sm_megahertz, 1410);
  EXPECT_FLOAT_EQ(gpu.most_sm_megahertz, 1590);
  EXPECT_FLOAT_EQ(gpu.memory_megahertz, 5000);
  EXPECT_EQ(gpu.slowed, 0);
  EXPECT_EQ(gpu.capped, 1);
  EXPECT_EQ(gpus[1].use, 0);
}

TEST(GpuMonitor, WithoutACounterEnergyIsPowerTimesTime) {
  FakeNvml mode("old");
  GpuMonitor monitor(LOCKSTEP_FAKE_NVML);
  monitor.sample(1);
  const GpuFigures gpu = monitor.sample(3)[0];
  EXPECT_NEAR(gpu.joules, 61.5 * 4, 1e-3);
  EXPECT_LT(gpu.slowed, 0) << "it does not say";
}

TEST(GpuMonitor, KnowsGpusThatAreTooHotAndThoseThatAreLost) {
  {
    FakeNvml mode("hot");
    GpuMonitor monitor(LOCKSTEP_FAKE_NVML);
    EXPECT_EQ(monitor.sample(1)[0].slowed, 1);
  }
  FakeNvml mode("lost");
  GpuMonitor monitor(LOCKSTEP_FAKE_NVML);
  ASSERT_EQ(monitor.count(), 2);
  const GpuFigures gpu = monitor.sample(1)[0];
  EXPECT_LT(gpu.use, 0);
  EXPECT_LT(gpu.watts, 0);
  EXPECT_EQ(gpu.memory_bytes, 0);
  EXPECT_EQ(gpu.joules, 0);
}

TEST(GpuMonitor, NoLibraryNoDriverAndAnotherLibraryMeanNoGpus) {
  EXPECT_EQ(GpuMonitor("").count(), 0);
  EXPECT_EQ(GpuMonitor("libno-such-library.so.1").count(), 0);
  EXPECT_TRUE(GpuMonitor("libc.so.6").sample(1).empty());
  FakeNvml mode("no_driver");
  testing::internal::CaptureStderr();
  EXPECT_EQ(GpuMonitor(LOCKSTEP_FAKE_NVML).count(), 0);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("nvmlInit_v2 failed with code 9"), std::string::npos)
      << "it was asked for by path: " << said;
}

TEST(GpuMonitor, TheEnvironmentChoosesTheLibrary) {
  unsetenv("LOCKSTEP_NVML");
  EXPECT_EQ(nvml_library(), "libnvidia-ml.so.1");
  setenv("LOCKSTEP_NVML", "none", 1);
  EXPECT_EQ(nvml_library(), "");
  setenv("LOCKSTEP_NVML", "/x.so", 1);
  EXPECT_EQ(nvml_library(), "/x.so");
  unsetenv("LOCKSTEP_NVML");
}

TEST(GpuMonitor, ItsFiguresAreTheMachines) {
  FakeNvml mode;
  HostUsage usage({.interface = "", .machine = true, .root = "", .nvml = LOCKSTEP_FAKE_NVML});
  usage.sample();
  ASSERT_EQ(usage.machine().gpus, 2);
  EXPECT_FLOAT_EQ(usage.machine().gpu[0].use, 0.87F);
  HostUsage rank({.interface = "", .machine = false, .root = "", .nvml = LOCKSTEP_FAKE_NVML});
  rank.sample();
  EXPECT_EQ(rank.machine().gpus, 0) << "another rank samples the machine";
}

}  // namespace
}  // namespace lockstep
