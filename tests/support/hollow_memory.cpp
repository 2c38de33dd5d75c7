// The memory of the GPU without a GPU (support/hollow_cuda.cpp), which is the host's.
#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "support/hollow_cuda.h"

namespace {

using hollow::count;
using hollow::current_device;
using hollow::failed;
using hollow::is_on_device;
using hollow::memory_of_a_device;

// These are never destroyed: libraries call until the process ends.
std::mutex& mutex() {
  static auto* one = new std::mutex;
  return *one;
}

struct Block {
  std::size_t bytes;
  cudaMemoryType type;
  int device;
};
std::map<const char*, Block>& blocks() {
  static auto* all = new std::map<const char*, Block>;
  return *all;
}
std::map<int, std::size_t>& used() {
  static auto* all = new std::map<int, std::size_t>;
  return *all;
}
std::size_t whole_pages(std::size_t bytes) { return (bytes / 4096 + 1) * 4096; }

cudaError_t take(void** out, std::size_t bytes, cudaMemoryType type) {
  const std::scoped_lock lock(mutex());
  const bool there = type == cudaMemoryTypeDevice;
  if (there && used()[current_device] + bytes > memory_of_a_device()) {
    return failed(cudaErrorMemoryAllocation);
  }
  void* memory = ::mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return failed(cudaErrorMemoryAllocation);
  blocks()[static_cast<const char*>(memory)] = {bytes, type, current_device};
  if (there) used()[current_device] += bytes;
  *out = memory;
  return cudaSuccess;
}

cudaError_t give_back(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  const std::scoped_lock lock(mutex());
  const auto found = blocks().find(static_cast<const char*>(memory));
  if (found == blocks().end()) return failed(cudaErrorInvalidValue);
  const Block block = found->second;
  blocks().erase(found);
  if (block.type == cudaMemoryTypeDevice) used()[block.device] -= block.bytes;
  ::munmap(memory, whole_pages(block.bytes));
  return cudaSuccess;
}

// Null: memory that CUDA does not know.
const Block* block_of(const void* pointer) {
  const auto* const byte = static_cast<const char*>(pointer);
  auto next = blocks().upper_bound(byte);
  if (next == blocks().begin()) return nullptr;
  --next;
  return byte < next->first + next->second.bytes ? &next->second : nullptr;
}
cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  count("copy " + std::to_string(kind));
  if (bytes == 0) return cudaSuccess;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind != cudaMemcpyDefault &&
      (is_on_device(to) != to_device || is_on_device(from) != from_device)) {
    return failed(cudaErrorInvalidValue);
  }
  std::memmove(to, from, bytes);
  return cudaSuccess;
}

}  // namespace

namespace hollow {

bool is_on_device(const void* pointer) {
  const std::scoped_lock lock(mutex());
  const Block* block = block_of(pointer);
  return block != nullptr && block->type == cudaMemoryTypeDevice;
}

std::size_t memory_of_a_device() {
  return static_cast<std::size_t>(asked("HOLLOW_CUDA_MEMORY", int64_t{8} << 30));
}

}  // namespace hollow

extern "C" {

cudaError_t cudaMalloc(void** out, std::size_t bytes) {
  count("cudaMalloc");
  return take(out, bytes, cudaMemoryTypeDevice);
}
cudaError_t cudaHostAlloc(void** out, std::size_t bytes, unsigned) {
  count("cudaHostAlloc");
  return take(out, bytes, cudaMemoryTypeHost);
}
cudaError_t cudaFree(void* memory) { return give_back(memory); }
cudaError_t cudaFreeHost(void* memory) { return give_back(memory); }
cudaError_t cudaMemGetInfo(std::size_t* unused, std::size_t* all) {
  const std::scoped_lock lock(mutex());
  *all = memory_of_a_device();
  *unused = *all - used()[current_device];
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* pointer) {
  const std::scoped_lock lock(mutex());
  *out = {};
  const Block* block = block_of(pointer);
  if (block == nullptr) return cudaSuccess;
  out->type = block->type;
  out->device = block->device;
  out->devicePointer = const_cast<void*>(pointer);
  if (block->type == cudaMemoryTypeHost) out->hostPointer = const_cast<void*>(pointer);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return copy(to, from, bytes, kind);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t) {
  return copy(to, from, bytes, kind);
}
cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t) {
  return cudaMemset(memory, value, bytes);
}
}
