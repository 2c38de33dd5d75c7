// A GPU without a GPU: CUDA's driver and runtime, cuBLAS, cuDNN and NCCL, whose memory is the
// host's and whose kernels do nothing. Before the real libraries in the order of the linker
// (LD_PRELOAD) it lets libtorch's own code for CUDA run, with all its checks of devices, types and
// shapes, its allocator, streams, events and process groups. Results are whatever the memory held,
// zeros with PYTORCH_NO_CUDA_MEMORY_CACHING=1. What it does not have here does nothing either
// (hollow_cuda.cmake). It is asked by the environment:
//
//     HOLLOW_CUDA_DEVICES=N        GPUs; 1
//     HOLLOW_CUDA_CAPABILITY=75    their compute capability, times ten; 90
//     HOLLOW_CUDA_MEMORY=BYTES     of each GPU; 8 GiB
//     HOLLOW_CUDA_COUNTS=FILE      at its end a process writes FILE.PID: how often each kernel ran
//     HOLLOW_CUDA_BREAKS=N         the N-th kernel, and all that is awaited from then on, is an
//     illegal access HOLLOW_CUDA_REDUCE=N         what fails is the N-th all-reduce of NCCL,
//     HOLLOW_CUDA_FAILS=call       at once,
//     HOLLOW_CUDA_FAILS=async      or later,
//     HOLLOW_CUDA_FAILS=hang       or by never ending
#include "support/hollow_cuda.h"

#include <cuda_runtime_api.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace {

using hollow::asked;
using hollow::count;
using hollow::current_device;
using hollow::failed;
using hollow::hangs;
using hollow::last_error;

// These are never destroyed: libraries call until the process ends.
std::mutex& mutex() {
  static auto* one = new std::mutex;
  return *one;
}
std::map<const void*, std::string>& kernel_names() {
  static auto* names = new std::map<const void*, std::string>;
  return *names;
}
std::map<std::string, int64_t>& counts() {
  static auto* all = new std::map<std::string, int64_t>;
  return *all;
}

void write_counts() {
  const char* file = std::getenv("HOLLOW_CUDA_COUNTS");
  if (file == nullptr) return;
  const std::scoped_lock lock(mutex());
  std::FILE* out = std::fopen((std::string(file) + "." + std::to_string(::getpid())).c_str(), "w");
  if (out == nullptr) return;
  for (const auto& [name, number] : counts()) std::fprintf(out, "%ld %s\n", number, name.c_str());
  std::fclose(out);
}

struct AtEnd {
  ~AtEnd() { write_counts(); }
} at_end;

// Kernels run after their launch, so that the host learns of an error when it waits.
std::atomic<int64_t> launches{0};
std::atomic<bool> is_broken{false};

// A grid that a GPU of compute capability 9.0 does not take is an error.
cudaError_t launch(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes) {
  constexpr unsigned kMostBlocks = 65535, kMostThreads = 1024;
  constexpr std::size_t kMostShared = 232448;
  std::string name = "?";
  {
    const std::scoped_lock lock(mutex());
    const auto found = kernel_names().find(kernel);
    if (found != kernel_names().end()) name = found->second;
  }
  count("kernel " + name);
  if (++launches == asked("HOLLOW_CUDA_BREAKS", 0) && hollow::is_meant()) is_broken = true;
  const bool empty = grid.x * grid.y * grid.z == 0 || block.x * block.y * block.z == 0;
  if (empty || grid.y > kMostBlocks || grid.z > kMostBlocks ||
      block.x * block.y * block.z > kMostThreads || shared_bytes > kMostShared) {
    std::fprintf(stderr, "hollow CUDA: a bad grid of %s\n", name.c_str());
    return failed(cudaErrorInvalidConfiguration);
  }
  return cudaSuccess;
}

cudaError_t wait() {
  while (hangs) ::usleep(1000);
  return is_broken ? failed(cudaErrorIllegalAddress) : cudaSuccess;
}

struct Event {
  std::chrono::steady_clock::time_point time;
  bool hangs = false;
};
Event& of(cudaEvent_t event) { return *reinterpret_cast<Event*>(event); }

struct Grid {
  dim3 blocks, threads;
  std::size_t shared_bytes = 0;
  void* stream = nullptr;
};
thread_local Grid pushed;

}  // namespace

namespace hollow {

std::atomic<bool> hangs{false};
thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

cudaError_t failed(cudaError_t error) {
  last_error = error;
  return error;
}

int64_t asked(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoll(text, nullptr, 10) : otherwise;
}

bool is_meant() {
  const int64_t rank = asked("HOLLOW_CUDA_RANK", -1);
  return rank < 0 || asked("LOCKSTEP_RANK", 0) == rank;
}

void count(const std::string& what) {
  const std::scoped_lock lock(mutex());
  ++counts()[what];
}

}  // namespace hollow

extern "C" {

// The ways in which a process ends without destructors.
void _exit(int code) {
  write_counts();
  ::syscall(SYS_exit_group, code);
  __builtin_unreachable();
}
void _Exit(int code) { _exit(code); }
void quick_exit(int code) noexcept { _exit(code); }

// --- The driver

int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return 0;
}
int cuDeviceGet(int* device, int index) {
  *device = index;
  return index < asked("HOLLOW_CUDA_DEVICES", 1) ? 0 : 101;
}
int cuDeviceGetName(char* name, int length, int) {
  std::snprintf(name, static_cast<std::size_t>(length), "Hollow GPU");
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  const auto capability = static_cast<int>(asked("HOLLOW_CUDA_CAPABILITY", 90));
  *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : 0;
  return 0;
}
int cuCtxGetCurrent(void** context) {
  static int one = 0;
  *context = &one;
  return 0;
}
int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return 0;
}
int cuGetErrorString(int, const char** text) {
  *text = "an error of the hollow driver";
  return 0;
}

// --- Kernels

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFunction(void**, const char* kernel, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  const std::scoped_lock lock(mutex());
  kernel_names()[kernel] = name;
}
unsigned __cudaPushCallConfiguration(dim3 blocks, dim3 threads, std::size_t shared_bytes,
                                     CUstream_st* stream) {
  pushed = {blocks, threads, shared_bytes, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* blocks, dim3* threads, std::size_t* shared_bytes,
                                       void* stream) {
  *blocks = pushed.blocks;
  *threads = pushed.threads;
  *shared_bytes = pushed.shared_bytes;
  std::memcpy(stream, &pushed.stream, sizeof pushed.stream);
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void**, std::size_t shared,
                             cudaStream_t) {
  return launch(kernel, grid, block, shared);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* how, const void* kernel, void**) {
  return launch(kernel, how->gridDim, how->blockDim, how->dynamicSmemBytes);
}
cudaError_t __cudaGetKernel(cudaKernel_t* out, const void* kernel) {
  *out = reinterpret_cast<cudaKernel_t>(const_cast<void*>(kernel));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void**,
                               std::size_t shared, cudaStream_t) {
  return launch(kernel, grid, block, shared);
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out, const void*) {
  *out = {};
  out->maxThreadsPerBlock = 1024;
  out->numRegs = 32;
  out->ptxVersion = out->binaryVersion = 90;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int,
                                                                   std::size_t, unsigned) {
  *blocks = 2;
  return cudaSuccess;
}

// --- Errors

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorMemoryAllocation) return "out of memory";
  if (error == cudaErrorIllegalAddress) return "an illegal memory access was encountered";
  return "an error of the hollow runtime";
}
const char* cudaGetErrorName(cudaError_t) { return "hollow"; }

// --- Devices

cudaError_t cudaGetDeviceCount(int* number) {
  *number = static_cast<int>(asked("HOLLOW_CUDA_DEVICES", 1));
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int) {
  const auto capability = static_cast<int>(asked("HOLLOW_CUDA_CAPABILITY", 90));
  *out = {};
  std::strcpy(out->name, "Hollow GPU");
  out->major = capability / 10;
  out->minor = capability % 10;
  out->totalGlobalMem = hollow::memory_of_a_device();
  out->multiProcessorCount = 132;
  out->warpSize = 32;
  out->maxThreadsPerBlock = out->maxThreadsDim[0] = out->maxThreadsDim[1] = 1024;
  out->maxThreadsDim[2] = 64;
  out->maxThreadsPerMultiProcessor = 2048;
  out->maxBlocksPerMultiProcessor = 32;
  out->maxGridSize[0] = INT32_MAX;
  out->maxGridSize[1] = out->maxGridSize[2] = 65535;
  out->sharedMemPerBlock = 49152;
  out->sharedMemPerBlockOptin = 232448;
  out->sharedMemPerMultiprocessor = 233472;
  out->regsPerBlock = out->regsPerMultiprocessor = 65536;
  out->l2CacheSize = 50 << 20;
  out->textureAlignment = 512;
  out->canMapHostMemory = out->unifiedAddressing = out->concurrentKernels = 1;
  out->asyncEngineCount = 3;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp all;
  cudaGetDeviceProperties(&all, device);
  const std::map<cudaDeviceAttr, int> known = {
      {cudaDevAttrComputeCapabilityMajor, all.major},
      {cudaDevAttrComputeCapabilityMinor, all.minor},
      {cudaDevAttrMultiProcessorCount, all.multiProcessorCount},
      {cudaDevAttrWarpSize, all.warpSize},
      {cudaDevAttrMaxThreadsPerBlock, all.maxThreadsPerBlock},
      {cudaDevAttrMaxThreadsPerMultiProcessor, all.maxThreadsPerMultiProcessor},
      {cudaDevAttrMaxSharedMemoryPerBlock, static_cast<int>(all.sharedMemPerBlock)},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, static_cast<int>(all.sharedMemPerBlockOptin)},
      {cudaDevAttrMaxGridDimX, all.maxGridSize[0]},
      {cudaDevAttrMaxGridDimY, all.maxGridSize[1]},
      {cudaDevAttrMaxGridDimZ, all.maxGridSize[2]}};
  const auto found = known.find(attribute);
  *value = found != known.end() ? found->second : 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  *function = nullptr;
  if (result != nullptr) *result = cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

// --- Streams and events

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned) {
  *out = reinterpret_cast<cudaStream_t>(std::malloc(1));
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned flags, int) {
  return cudaStreamCreateWithFlags(out, flags);
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  count("cudaStreamSynchronize");
  return wait();
}
cudaError_t cudaDeviceSynchronize() { return wait(); }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t*, const cudaGraphNode_t**,
                                     const cudaGraphEdgeData**, std::size_t*) {
  *status = cudaStreamCaptureStatusNone;
  if (id != nullptr) *id = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned) {
  callback(stream, cudaSuccess, data);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned) {
  *out = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* out) { return cudaEventCreateWithFlags(out, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &of(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  of(event) = {std::chrono::steady_clock::now(), hangs};
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (is_broken) return wait();
  return of(event).hangs && hangs ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return of(event).hangs || is_broken ? wait() : cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t second) {
  const std::chrono::duration<float, std::milli> between = of(second).time - of(first).time;
  *milliseconds = between.count();
  return cudaSuccess;
}
}
