#include "gpu/gpu_kernels.h"

namespace lockstep {
namespace {

const GpuKernels*& chosen() {
  static const GpuKernels* table = nullptr;
  return table;
}

}  // namespace

const GpuKernels* gpu_kernels() { return chosen(); }

void use_gpu_kernels(const GpuKernels* table) { chosen() = table; }

}  // namespace lockstep
