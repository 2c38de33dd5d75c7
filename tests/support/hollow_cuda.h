// What the parts of the GPU without a GPU share (support/hollow_cuda.cpp).
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace hollow {

// Returns a number of the environment.
int64_t asked(const char* name, int64_t otherwise);

// Whether this process is one in which something is to fail.
bool is_meant();

// Counts a call for HOLLOW_CUDA_COUNTS.
void count(const std::string& what);

// Returns `error`, which becomes the thread's last one.
cudaError_t failed(cudaError_t error);
extern thread_local cudaError_t last_error;
extern thread_local int current_device;

bool is_on_device(const void* pointer);
std::size_t memory_of_a_device();  // bytes

// What is recorded and awaited on a GPU from now on does not end while this holds.
extern std::atomic<bool> hangs;

}  // namespace hollow
