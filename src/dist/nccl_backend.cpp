#include "dist/nccl_backend.h"

#if defined(USE_C10D_NCCL) && __has_include(<nccl.h>)
#define LOCKSTEP_NCCL 1
#include <c10/cuda/CUDAFunctions.h>

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

namespace lockstep {

#ifdef LOCKSTEP_NCCL

bool built_with_nccl() { return true; }

c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    int rank, int size,
                                                    std::chrono::milliseconds timeout) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, options);
}

void choose_cuda_device(int index) { c10::cuda::set_device(static_cast<c10::DeviceIndex>(index)); }

#else

bool built_with_nccl() { return false; }

c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>&, int,
                                                    int, std::chrono::milliseconds) {
  TORCH_CHECK(false, "this build has no NCCL");
}

void choose_cuda_device(int) { TORCH_CHECK(false, "this build has no NCCL"); }

#endif

}  // namespace lockstep
