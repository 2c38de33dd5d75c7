// Declares CUDA's table of kernels (row_kernels.cu). Only the module for GPUs, where it was built
// with CUDA's compiler, defines it.
#pragma once

#include "gpu/gpu_kernels.h"

namespace lockstep {

// Returns the table; its kernels go to the stream (a cudaStream_t) that `current_stream` names when
// they are called.
const GpuKernels* cuda_kernels(void* (*current_stream)());

}  // namespace lockstep
