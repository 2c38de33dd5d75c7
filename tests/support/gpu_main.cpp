// The main function of the tests of kernels on a GPU: exit code 77 where there is none.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  ::setenv("CUDA_LAUNCH_BLOCKING", "1", 1);  // a kernel is done when its call returns
  int count = 0;
  if (const cudaError_t status = ::cudaGetDeviceCount(&count); status != cudaSuccess) {
    std::printf("skipped: no GPU: %s\n", ::cudaGetErrorString(status));
    return 77;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
