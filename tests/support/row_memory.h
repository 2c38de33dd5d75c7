// Where the tests of the kernels of GPUs keep their numbers and run them: here, or on a GPU where
// the test is compiled with LOCKSTEP_ON_GPU.
#pragma once

#include <vector>

#include "support/host_rows.h"

#ifdef LOCKSTEP_ON_GPU

#include <cuda_runtime_api.h>

#include <new>

#include "gpu/cuda_kernels.h"

namespace lockstep {

template <class T>
struct SharedAllocator {  // memory that host and GPU both reach
  using value_type = T;
  SharedAllocator() = default;
  template <class Other>
  SharedAllocator(const SharedAllocator<Other>&) {}  // NOLINT: implicit by the standard's rules

  T* allocate(std::size_t count) {
    void* out = nullptr;
    if (::cudaMallocManaged(&out, count * sizeof(T)) != cudaSuccess) throw std::bad_alloc();
    return static_cast<T*>(out);
  }
  void deallocate(T* memory, std::size_t) { ::cudaFree(memory); }
  template <class Other>
  bool operator==(const SharedAllocator<Other>&) const {
    return true;
  }
};

template <class T>
using Numbers = std::vector<T, SharedAllocator<T>>;

inline const GpuKernels& kernels_under_test() {
  return *cuda_kernels([]() -> void* { return nullptr; });  // CUDA's default stream
}

}  // namespace lockstep

#else

namespace lockstep {

template <class T>
using Numbers = std::vector<T>;

inline const GpuKernels& kernels_under_test() {
  static const GpuKernels table = detail::gpu_rows::make_gpu_kernels<HostLaunch>();
  return table;
}

}  // namespace lockstep

#endif
