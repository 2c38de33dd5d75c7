#include "dist/cuda.h"

#include <dlfcn.h>
#include <torch/cuda.h>

#include <string_view>

#include "base/module.h"

namespace lockstep {

namespace {

const Module& module() {
  static const Module loaded = load_module("liblockstep_cuda.so", "lockstep_cuda_functions");
  return loaded;
}

struct Gpus {
  int count = 0;
  std::string why;  // there is none
};

Gpus look_for_gpus() {
  if (::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_GLOBAL) == nullptr) {
    return {0, "no NVIDIA driver (libcuda.so.1)"};
  }
  if (cuda_functions() == nullptr) return {0, "no module for CUDA: " + module().why};
  const auto count = static_cast<int>(torch::cuda::device_count());
  return {count, count == 0 ? "the driver shows no GPU that this torch can use" : ""};
}

const Gpus& gpus() {
  static const Gpus found = look_for_gpus();
  return found;
}

}  // namespace

const CudaFunctions* cuda_functions() {
  using Function = const CudaFunctions* (*)();
  if (module().function == nullptr) return nullptr;
  return reinterpret_cast<Function>(module().function)();
}

int usable_gpus() { return gpus().count; }

std::string why_no_gpu() { return gpus().why; }

}  // namespace lockstep
