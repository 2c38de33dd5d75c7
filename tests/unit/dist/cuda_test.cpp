#include "dist/cuda.h"

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
}

}  // namespace
}  // namespace lockstep
