// Sums between machines: lockstep's mesh against Gloo's ring, in turn in the same processes. One
// rank a machine (or network namespace), started by any launcher:
//
//   network_sums [SECONDS]        about 1 s for each size and way
//
// benchmarks/slow_links --sums runs it between virtual hosts. Prints medians over the calls of the
// slowest rank; "in 4 MB" starts all pieces at once, as a step does with its buckets.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "dist/collectives/gloo_backend.h"
#include "dist/collectives/store.h"
#include "dist/collectives/world.h"
#include "dist/rank/launch_environment.h"
#include "dist/rank/network.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
using Backend = c10::intrusive_ptr<c10d::Backend>;

constexpr int64_t kPiece = int64_t{4} << 20;

struct Size {
  const char* name;
  int64_t bytes;
};

std::vector<torch::Tensor> pieces_of(const torch::Tensor& whole) {
  return whole.split(kPiece / whole.element_size());
}

void sum_by_mesh(World& world, const torch::Tensor& whole) {
  std::vector<Completion> running;
  for (const torch::Tensor& piece : pieces_of(whole)) {
    running.push_back(world.start_all_reduce_sum(piece, "piece"));
  }
  for (const Completion& completion : running) completion();
}

void sum_by_gloo(const Backend& gloo, const torch::Tensor& whole) {
  std::vector<c10::intrusive_ptr<c10d::Work>> running;
  for (const torch::Tensor& piece : pieces_of(whole)) {
    std::vector<torch::Tensor> tensors{piece};
    running.push_back(gloo->allreduce(tensors));
  }
  for (const auto& work : running) work->wait();
}

// Medians in milliseconds of the slowest rank.
template <class Call>
double median_of(World& world, double seconds, const Call& call) {
  std::vector<double> took;
  int calls = 5;
  for (int i = -1; i < calls; ++i) {
    world.barrier();
    auto start = Clock::now();
    call();
    double ms[] = {std::chrono::duration<double, std::milli>(Clock::now() - start).count()};
    world.all_reduce_max(ms);
    if (i < 0) calls = std::clamp(static_cast<int>(seconds * 1e3 / ms[0]), 3, 200);
    if (i >= 0) took.push_back(ms[0]);
  }
  std::sort(took.begin(), took.end());
  return took[took.size() / 2];
}

int run(double seconds) {
  torch::set_num_threads(1);
  LaunchEnvironment environment = detect_launch_environment();
  World world(environment, {});
  LaunchEnvironment beside = environment;
  ++beside.master_port;
  beside.store_descriptor = -1;
  beside.run_id += "-gloo";
  constexpr std::chrono::seconds kLimit{60};
  auto store = open_store(beside, kLimit);
  const std::string address = local_address_towards(environment.master_address).address;
  Backend gloo =
      make_gloo_backend(store, environment.rank, environment.size, {.address = address}, kLimit);
  if (world.is_leader()) {
    fmt::print("{} machines; median ms of the slowest\n{:<14} {:>10} {:>10} {:>7}\n",
               environment.size, "size", "mesh", "Gloo", "ratio");
  }
  for (const Size& size : {Size{"64 B", 64}, Size{"64 KB", 64 << 10}, Size{"1 MB", 1 << 20},
                           Size{"4 MB", kPiece}, Size{"28 MB in 4 MB", 7 * kPiece}}) {
    torch::Tensor whole = torch::zeros({size.bytes / 4});
    const double mesh = median_of(world, seconds, [&] { sum_by_mesh(world, whole); });
    const double ring = median_of(world, seconds, [&] { sum_by_gloo(gloo, whole); });
    if (!world.is_leader()) continue;
    fmt::print("{:<14} {:>10.2f} {:>10.2f} {:>7.2f}\n", size.name, mesh, ring, ring / mesh);
    std::fflush(stdout);
  }
  world.barrier();
  return kExitOk;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  try {
    return lockstep::run(argc > 1 ? std::atof(argv[1]) : 1);
  } catch (const lockstep::Error& error) {
    fmt::print(stderr, "{}\n", error.describe());
    return error.exit_code();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return lockstep::kExitInternal;
  }
}
