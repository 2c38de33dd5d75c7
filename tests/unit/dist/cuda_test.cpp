#include "dist/collectives/cuda.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <torch/version.h>

#include "base/file.h"

namespace lockstep {
namespace {

// Tests stand one folder below the build's, where the module is.
bool module_was_built() {
  return fs::exists(fs::read_symlink("/proc/self/exe").parent_path().parent_path() /
                    "liblockstep_cuda.so");
}

TEST(Cuda, WithoutAGpuTheReasonIsNamed) {
  if (usable_gpus() > 0) GTEST_SKIP() << "this machine has one";
  EXPECT_NE(why_no_gpu(), "");
}

TEST(Cuda, AProgramWithoutTheModuleSaysSo) {
  if (module_was_built()) GTEST_SKIP() << "this build has the module";
  EXPECT_EQ(cuda_functions(), nullptr);
}

TEST(Cuda, TheModuleLoadsWithoutADriver) {
  if (!module_was_built()) GTEST_SKIP() << "needs a CUDA wheel of torch: scripts/test --torch cuda";
  const CudaFunctions* functions = cuda_functions();
  ASSERT_NE(functions, nullptr);
  EXPECT_STREQ(functions->torch_version, TORCH_VERSION);
  EXPECT_GE(functions->cuda_version, 12000);
}

TEST(Cuda, AGpuThatTorchHasNoKernelsForIsNamed) {
  const GpuModel t4{"Tesla T4", 7, 5}, v100{"Tesla V100", 7, 0};
  EXPECT_EQ(why_unsuited(t4, 13000, 13000), "");
  EXPECT_EQ(why_unsuited(t4, 13020, 13000), "");
  EXPECT_EQ(why_unsuited(t4, 12040, 12060), "") << "minor releases are compatible";
  EXPECT_EQ(why_unsuited(t4, 12040, 13000), "the driver is for CUDA 12.4, this torch for 13.0");
  EXPECT_EQ(why_unsuited(v100, 13000, 13000),
            "the Tesla V100 has compute capability 7.0, and torch for CUDA 13.0 begins at 7.5");
  EXPECT_EQ(why_unsuited(v100, 12060, 12060), "");
  EXPECT_EQ(why_unsuited(v100, 0, 12060), "") << "a driver that does not tell";
}

TEST(Cuda, TellsTheModelOfAGpuByTheDriverAlone) {
  // Under the driver's own name from now on; a machine that has a real one keeps that.
  if (dlopen("libcuda.so.1", RTLD_LAZY) != nullptr) GTEST_SKIP() << "this machine has a driver";
  ASSERT_NE(dlopen(LOCKSTEP_FAKE_CUDA, RTLD_NOW), nullptr) << dlerror();
  const std::optional<GpuModel> model = gpu_model(0);
  ASSERT_TRUE(model);
  EXPECT_EQ(model->name, "Tesla T4");
  EXPECT_EQ(model->major, 7);
  EXPECT_EQ(model->minor, 5);
  EXPECT_FALSE(gpu_model(1)) << "there is one";
}

}  // namespace
}  // namespace lockstep
