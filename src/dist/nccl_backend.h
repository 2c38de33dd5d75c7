// The backend for CUDA tensors, where the torch wheel has NCCL (USE_C10D_NCCL).
#pragma once

#include <chrono>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace lockstep {

bool built_with_nccl();

// One rank a GPU: the caller has chosen its device. The communicator itself is made by the first
// collective operation. REQUIRES: built_with_nccl().
c10::intrusive_ptr<c10d::Backend> make_nccl_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    int rank, int size,
                                                    std::chrono::milliseconds timeout);

// Makes the local device `index` the current one of this thread. REQUIRES: built_with_nccl().
void choose_cuda_device(int index);

}  // namespace lockstep
