// What the program needs of CUDA beyond torch's own functions. It stands in a module of its own
// (liblockstep_cuda.so, built where CUDA's headers are), which brings libtorch_cuda with it: the
// program links to libtorch_cpu alone, so that one build runs with the CPU wheel of torch and with
// the CUDA wheel, and a machine without a GPU does not load gigabytes for nothing.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace lockstep {

// What the module offers (dist/cuda/cuda_module.cpp).
struct CudaFunctions {
  const char* torch_version;  // whose headers it was compiled with, as 2.13.0

  // One rank a GPU: the caller has chosen its device. The communicator itself is made by the first
  // collective operation.
  c10::intrusive_ptr<c10d::Backend> (*make_nccl_backend)(
      const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
      std::chrono::milliseconds timeout);

  // Makes the local device `index` the current one of this thread.
  void (*choose_device)(int index);
};

// The module, loaded with the first call; null where it cannot be had. It loads without a driver.
const CudaFunctions* cuda_functions();

// The local GPU `index` as CUDA numbers them, by the driver alone; nothing without one.
struct GpuModel {
  std::string name;          // "Tesla T4"
  int major = 0, minor = 0;  // of its compute capability
};
std::optional<GpuModel> gpu_model(int index);

// GPUs that this process can compute on; 0 without a driver, without a CUDA wheel or without the
// module. Loads the module only where there is a driver (libcuda.so.1).
int usable_gpus();

// Why usable_gpus() is 0, as a clause: "no NVIDIA driver (libcuda.so.1)"; empty when it is not.
std::string why_no_gpu();

}  // namespace lockstep
