#include "nn/device_error.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <new>

namespace lockstep {
namespace {

const c10::SourceLocation kHere{"here", "here.cpp", 1};

void expect_told(const std::exception& error, const std::string& says) {
  const auto told = device_error(error);
  ASSERT_TRUE(told) << says;
  EXPECT_EQ(told->exit_code(), kExitMachine);
  EXPECT_EQ(told->describe(), says);
}

TEST(DeviceError, SaysALackOfMemoryInALine) {
  const std::string advice =
      "\n  try: smaller batches (training: training.fit_memory = true finds their size; "
      "evaluation: "
      "batch.evaluation_images, batch.evaluation_tokens or decoding.batch_tokens), a smaller "
      "model, or "
      "more memory";
  expect_told(c10::OutOfMemoryError(
                  kHere,
                  "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
                  "14.58 GiB of which 1.21 GiB is free. Of the allocated memory 12.9 GiB is "
                  "allocated by PyTorch. If reserved but unallocated memory is large try setting"),
              "not enough memory\n  because: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 "
              "has a total "
              "capacity of 14.58 GiB of which 1.21 GiB is free." +
                  advice);
  expect_told(c10::AcceleratorError(kHere, 2, "CUDA error: out of memory\nSearch for"),
              "not enough memory\n  because: CUDA error: out of memory" + advice);
  const std::string text =
      "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)";
  expect_told(c10::Error(kHere, text), "not enough memory\n  because: " + text + advice);
  expect_told(std::bad_alloc(), "not enough memory\n  because: std::bad_alloc" + advice);
}

TEST(DeviceError, SaysWhatAGpuFailedWithAndWhatToDo) {
  const std::string again =
      "\n  try: start again, from the newest checkpoint; where it fails again, dmesg | grep Xid "
      "says what the driver "
      "saw of it";
  expect_told(c10::AcceleratorError(kHere, 214,
                                    "CUDA error: uncorrectable ECC error encountered\nSearch for"),
              "a GPU failed\n  because: CUDA error: uncorrectable ECC error encountered" + again);
  expect_told(c10::Error(kHere, "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"),
              "a GPU failed\n  because: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED" + again);
  expect_told(c10::AcceleratorError(kHere, 46,
                                    "CUDA error: all CUDA-capable devices are busy or unavailable"),
              "a GPU failed\n  because: CUDA error: all CUDA-capable devices are busy or "
              "unavailable\n  try: end what "
              "else computes on the GPU, or let it be shared: nvidia-smi -c DEFAULT");
}

TEST(DeviceError, IsNothingElse) {
  EXPECT_FALSE(
      device_error(c10::Error(kHere, "The size of tensor a (3) must match the size of tensor b")));
  EXPECT_FALSE(device_error(std::runtime_error("CUDA error: not from libtorch")));
}

}  // namespace
}  // namespace lockstep
