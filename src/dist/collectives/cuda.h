// Declares what the program needs of CUDA beyond torch's own functions. That code is in a module
// of its own (liblockstep_cuda.so, built where CUDA's headers are installed), which loads
// libtorch_cuda: the program itself links to libtorch_cpu alone, so that one build runs with the
// CPU wheel of torch and with the CUDA wheel, and a machine without a GPU does not load
// gigabytes for nothing.
#pragma once

#include <c10/core/DeviceType.h>

#include <chrono>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "gpu/gpu_kernels.h"

namespace lockstep {

// The functions of the module (dist/cuda/cuda_module.cpp).
struct CudaFunctions {
  const char* torch_version;  // of torch's headers it was compiled with, such as 2.13.0
  int cuda_version;           // of CUDA's headers, likewise: 13000 is 13.0

  // Makes the backend for one rank per GPU; the caller has chosen the device. The first collective
  // operation creates the communicator itself.
  c10::intrusive_ptr<c10d::Backend> (*make_nccl_backend)(
      const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
      std::chrono::milliseconds timeout);

  // Makes the local device `index` the current one of this thread.
  void (*choose_device)(int index);

  // Returns the kernels of GPUs; null where the module was built without CUDA's compiler, or for
  // another release of CUDA than this torch.
  const GpuKernels* (*kernels)();
};

// Returns the module's functions, loading it at the first call; null where it cannot be loaded.
// Loading needs no driver.
const CudaFunctions* cuda_functions();

// Describes the local GPU `index` in CUDA's numbering, by the driver alone; returns nothing without
// a driver.
struct GpuModel {
  std::string name;          // "Tesla T4"
  int major = 0, minor = 0;  // its compute capability
};
std::optional<GpuModel> gpu_model(int index);

// Returns why torch, built with CUDA `cuda`, cannot compute on this GPU under a driver made for
// CUDA `driver` (13000 is 13.0, both), as a clause; empty when it can. scripts/machine_facts says
// the same to scripts/setup, before anything is downloaded.
std::string why_unsuited(const GpuModel& gpu, int driver, int cuda);

// Returns the number of GPUs that this process can compute on; 0 without a driver, without a CUDA
// wheel or without the module. Loads the module only where there is a driver (libcuda.so.1); where
// there are GPUs, gpu_kernels() is set from then on.
int usable_gpus();

// The type of the devices that usable_gpus() counts: CUDA's, unless a test put a device of its own
// in their place, of which there are `count` on this host, with `functions` for those of the
// module. Call use_as_gpus() before all others.
c10::DeviceType gpu_type();
void use_as_gpus(c10::DeviceType type, int count, const CudaFunctions* functions);

// Returns why usable_gpus() is 0, as a clause: "no NVIDIA driver (libcuda.so.1)"; empty when it is
// not 0.
std::string why_no_gpu();

}  // namespace lockstep
