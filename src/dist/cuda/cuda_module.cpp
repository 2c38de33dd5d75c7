// This is the module that dist/collectives/cuda.h describes. It holds all code
// that needs CUDA's headers.
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <torch/version.h>

#include <cstdlib>

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "dist/collectives/cuda.h"
#include "gpu/cuda_kernels.h"

namespace {

c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    int rank, int size,
                                                    std::chrono::milliseconds timeout) {
  // An operation that fails or takes too long is ended, so that the GPU goes on and the loop finds
  // it (World::check_gpu_operations); by default c10d's watchdog ends the process.
  ::setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "2", /*overwrite=*/0);
  // After an error the watchdog sleeps for four times as long as a dump of what happened may take
  // (60 s) before it aborts, with the lock that the loop's next operation needs; and the monitor
  // would end the process by SIGABRT while the loop is about to say who failed.
  // So would the watchdog itself when it meets a GPU that failed; the loop meets it too.
  ::setenv("TORCH_NCCL_RETHROW_CUDA_ERRORS", "0", /*overwrite=*/0);
  ::setenv("TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "0", /*overwrite=*/0);
  ::setenv("TORCH_NCCL_DUMP_ON_TIMEOUT", "0", /*overwrite=*/0);
  ::setenv("TORCH_NCCL_ENABLE_MONITORING", "0", /*overwrite=*/0);
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, options);
  backend->enableCollectivesTiming();  // for the account of a step (dist/account/step_account.h)
  return backend;
}

void choose_device(int index) { c10::cuda::set_device(static_cast<c10::DeviceIndex>(index)); }

#ifdef LOCKSTEP_CUDA_KERNELS
void* current_stream() { return c10::cuda::getCurrentCUDAStream().stream(); }
const lockstep::GpuKernels* kernels() {
  int runtime = 0;
  const bool same =
      ::cudaRuntimeGetVersion(&runtime) == cudaSuccess && runtime / 1000 == CUDART_VERSION / 1000;
  return same ? lockstep::cuda_kernels(current_stream) : nullptr;
}
#else
const lockstep::GpuKernels* kernels() { return nullptr; }
#endif

}  // namespace

extern "C" const lockstep::CudaFunctions* lockstep_cuda_functions() {
  static constexpr lockstep::CudaFunctions functions{TORCH_VERSION, CUDART_VERSION,
                                                     make_nccl_backend, choose_device, kernels};
  return &functions;
}
