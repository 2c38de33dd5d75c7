#include "dist/cuda.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace lockstep {
namespace {

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
