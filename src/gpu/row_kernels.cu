// Makes the kernels of gpu/row_kernels.h run on a GPU: a block of threads is the team of a row.
#include "gpu/row_kernels.h"

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include "gpu/cuda_kernels.h"

namespace lockstep {
namespace {

constexpr int kWarp = 32;
// Rows are some hundred to some ten thousand columns wide. Not tuned on a GPU yet.
constexpr int kRowThreads = 256, kElementThreads = 256;
constexpr int64_t kMostBlocks = 65535;

void* (*current_stream)() = nullptr;

template <bool kSum, class T>
__host__ __device__ T both(T a, T b) {
  return kSum ? a + b : (a > b ? a : b);
}

template <bool kSum, class T>
__host__ __device__ T over_warp(T x) {
#ifdef __CUDA_ARCH__
  for (int step = kWarp / 2; step > 0; step /= 2) {
    x = both<kSum>(x, __shfl_xor_sync(0xffffffffu, x, step));
  }
#endif
  return x;
}

// All threads of a block. Sums are of the threads of a warp, then of the warps, always in one
// order.
class BlockTeam {
 public:
  // Both are shared memory: warps [kRowThreads / kWarp], room as the row's kernel needs it.
  __device__ BlockTeam(float* warps, float* room) : warps_(warps), room_(room) {}

  __host__ __device__ int64_t rank() const {
#ifdef __CUDA_ARCH__
    return threadIdx.x;
#else
    return 0;
#endif
  }
  __host__ __device__ int64_t size() const { return kRowThreads; }
  __host__ __device__ float sum(float x) const { return over_all<true>(x); }
  __host__ __device__ float max(float x) const { return over_all<false>(x); }
  __host__ __device__ float* room() const { return room_; }
  __host__ __device__ void sync() const {
#ifdef __CUDA_ARCH__
    __syncthreads();
#endif
  }

 private:
  template <bool kSum>
  __host__ __device__ float over_all(float x) const {
#ifdef __CUDA_ARCH__
    x = over_warp<kSum>(x);
    __syncthreads();  // everyone has read what stood there before
    if (threadIdx.x % kWarp == 0) warps_[threadIdx.x / kWarp] = x;
    __syncthreads();
    float all = warps_[0];
    for (int warp = 1; warp < kRowThreads / kWarp; ++warp) all = both<kSum>(all, warps_[warp]);
    return all;
#else
    return x;
#endif
  }

  float *warps_, *room_;
};

// The threads of a warp, of which a block has kRowThreads / kWarp.
class WarpTeam {
 public:
  __host__ __device__ int64_t rank() const {
#ifdef __CUDA_ARCH__
    return threadIdx.x % kWarp;
#else
    return 0;
#endif
  }
  __host__ __device__ int64_t size() const { return kWarp; }
  template <class T>
  __host__ __device__ T sum(T x) const {
    return over_warp<true>(x);
  }
  __host__ __device__ float max(float x) const { return over_warp<false>(x); }
  __host__ __device__ void sync() const {
#ifdef __CUDA_ARCH__
    __syncwarp();
#endif
  }
};

template <class Row>
concept SmallTeam = Row::kSmallTeam;
template <class Row>
concept UsesRoom = Row::kUsesRoom;

template <class Row, class Args>
__global__ void __launch_bounds__(kRowThreads) run_rows(const Args args, const int64_t rows) {
  __shared__ float warps[kRowThreads / kWarp];
  __shared__ float room[UsesRoom<Row> ? detail::gpu_rows::kRoom : 1];
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    Row{}(args, row, BlockTeam(warps, room));
  }
}

template <class Row, class Args>
__global__ void __launch_bounds__(kRowThreads) run_small_rows(const Args args, const int64_t rows) {
  const int64_t step = int64_t{gridDim.x} * (kRowThreads / kWarp);
  int64_t row = int64_t{blockIdx.x} * (kRowThreads / kWarp) + threadIdx.x / kWarp;
  for (; row < rows; row += step) Row{}(args, row, WarpTeam());
}

template <class Element, class Args>
__global__ void __launch_bounds__(kElementThreads)
    run_elements(const Args args, const int64_t count) {
  const int64_t step = int64_t{gridDim.x} * kElementThreads;
  for (int64_t i = int64_t{blockIdx.x} * kElementThreads + threadIdx.x; i < count; i += step) {
    Element{}(args, i);
  }
}

void check_launch() {
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string("CUDA cannot run a kernel of lockstep: ") +
                           cudaGetErrorString(status));
}

cudaStream_t stream() { return static_cast<cudaStream_t>(current_stream()); }

unsigned blocks_of(int64_t wanted) {
  return static_cast<unsigned>(wanted < kMostBlocks ? wanted : kMostBlocks);
}

struct CudaLaunch {
  template <class Row, class Args>
  static void row(const Args& args, int64_t rows) {
    if (rows == 0) return;
    if constexpr (SmallTeam<Row>) {
      constexpr int kRows = kRowThreads / kWarp;
      const unsigned blocks = blocks_of((rows + kRows - 1) / kRows);
      run_small_rows<Row><<<blocks, kRowThreads, 0, stream()>>>(args, rows);
    } else {
      run_rows<Row><<<blocks_of(rows), kRowThreads, 0, stream()>>>(args, rows);
    }
    check_launch();
  }
  template <class Element, class Args>
  static void element(const Args& args, int64_t count) {
    if (count == 0) return;
    const int64_t blocks = (count + kElementThreads - 1) / kElementThreads;
    run_elements<Element><<<blocks_of(blocks), kElementThreads, 0, stream()>>>(args, count);
    check_launch();
  }
};

}  // namespace

const GpuKernels* cuda_kernels(void* (*stream_of_now)()) {
  static const GpuKernels table = detail::gpu_rows::make_gpu_kernels<CudaLaunch>();
  current_stream = stream_of_now;
  return &table;
}

}  // namespace lockstep
