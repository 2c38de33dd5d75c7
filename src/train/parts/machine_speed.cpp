#include "train/parts/machine_speed.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <time.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "dist/collectives/cuda.h"
#include "nn/product.h"

namespace lockstep {

namespace {

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Returns the CPU time of this thread.
double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Calls f() for `seconds` of wall time, after one call that is not counted, and returns the
// shortest time of a call by the clock `now`.
template <class F>
double best_seconds(double seconds, double (*now)(), const F& f) {
  f();
  double best = 1e9;
  const double begin = wall_seconds();
  do {
    const double start = now();
    f();
    best = std::min(best, now() - start);
  } while (wall_seconds() - begin < seconds);
  return best;
}

// On CPUs of aarch64 without bf16 products libtorch warns, with its stack, and takes another way.
class NoWarnings : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

double product_speed(torch::Device device, at::ScalarType type, double seconds) {
  constexpr int64_t kRows = 512, kWidth = 1024;
  const auto options = torch::TensorOptions(device).dtype(type);
  const torch::Tensor x = torch::full({kRows, kWidth}, 0.5, options);
  const torch::Tensor weight = torch::full({kWidth, kWidth}, 0.25, options);
  const bool gpu = device.is_cuda();
  const int calls = gpu ? 20 : 1;  // to synchronize a GPU rarely
  // One core is timed by CPU time, which excludes other programs that share it.
  const bool alone = !gpu && at::get_num_threads() == 1;
  const double best = best_seconds(seconds, alone ? thread_seconds : wall_seconds, [&] {
    torch::Tensor y;
    for (int i = 0; i < calls; ++i) y = detail::product_transposed(x, weight);
    if (gpu) torch::cuda::synchronize();
  });
  return calls * 2.0 * kRows * kWidth * kWidth / best;
}

double copy_speed(double seconds) {
  constexpr int64_t kBytes = int64_t{64} << 20;  // larger than most caches
  torch::Tensor from = torch::ones({kBytes}, torch::kUInt8), to = torch::ones_like(from);
  const auto* source = from.const_data_ptr<uint8_t>();
  auto* target = to.mutable_data_ptr<uint8_t>();
  const double best = best_seconds(seconds, wall_seconds, [&] {
    at::parallel_for(0, kBytes, kBytes / 64, [&](int64_t begin, int64_t end) {
      std::memcpy(target + begin, source + begin, static_cast<std::size_t>(end - begin));
    });
  });
  return static_cast<double>(kBytes) / best;
}

}  // namespace

MachineSpeed measure_machine(double seconds) {
  torch::NoGradGuard no_grad;
  NoWarnings no_warnings;
  const c10::WarningUtils::WarningHandlerGuard guard(&no_warnings);
  MachineSpeed out;
  const double each = seconds / 5;
  out.copied_bytes_per_second = copy_speed(each);
  out.threads = at::get_num_threads();
  if (usable_gpus() > 0) {
    out.device = "cuda";
    out.fp32_one = out.fp32_all = product_speed(torch::kCUDA, at::kFloat, each);
    out.bf16_one = out.bf16_all = product_speed(torch::kCUDA, at::kBFloat16, each);
    return out;
  }
  out.fp32_all = product_speed(torch::kCPU, at::kFloat, each);
  out.bf16_all = product_speed(torch::kCPU, at::kBFloat16, each);
  at::set_num_threads(1);
  out.fp32_one = product_speed(torch::kCPU, at::kFloat, each);
  out.bf16_one = product_speed(torch::kCPU, at::kBFloat16, each);
  at::set_num_threads(out.threads);
  return out;
}

}  // namespace lockstep
