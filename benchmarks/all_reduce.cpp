// All-reduce between ranks of one machine: shared memory against Gloo over loopback, in turn in the
// same processes. Starts its ranks itself.
//
//   all_reduce [RANKS [TYPE [SECONDS]]]    2, fp32 (or bf16), about 1 s for each size
//
// Prints medians over the calls of the slowest rank; GB/s are bytes of the tensor by time.
#include <fmt/format.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "dist/collectives/world.h"
#include "dist/rank/network.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
  int ranks = 2;
  torch::ScalarType type = torch::kFloat32;
  double seconds = 1;
};

struct Way {
  std::unique_ptr<World> world;
  std::vector<double> microseconds = {};
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// One call after a barrier; the time of the slowest rank, alike on all.
double timed_call(World& world, World& judge, const torch::Tensor& tensor) {
  judge.barrier();
  auto start = Clock::now();
  world.all_reduce_sum(tensor);
  double took[] = {std::chrono::duration<double, std::micro>(Clock::now() - start).count()};
  judge.all_reduce_max(took);
  return took[0];
}

void measure(std::vector<Way>& ways, int64_t bytes, const Settings& settings) {
  World& judge = *ways.back().world;
  int64_t width = settings.type == torch::kBFloat16 ? 2 : 4;
  torch::Tensor tensor = torch::zeros({bytes / width}, settings.type);
  // Memory of a steady state: all its pages are there.
  double first = timed_call(*ways.front().world, judge, tensor);
  first = std::max(first, timed_call(*ways.front().world, judge, tensor));
  int calls = std::clamp(static_cast<int>(settings.seconds * 1e6 / first), 5, 500);
  for (int call = -1; call < calls; ++call) {
    for (Way& way : ways) {
      double took = timed_call(*way.world, judge, tensor);
      if (call >= 0) way.microseconds.push_back(took);
    }
  }
  if (judge.is_leader()) {
    double gloo = median(ways[0].microseconds), shared = median(ways[1].microseconds);
    double gigabytes = static_cast<double>(bytes) / 1e3;
    fmt::print("{:>8} KB  {:>10.1f} us {:>6.2f} GB/s  {:>10.1f} us {:>6.2f} GB/s  {:>6.1f}\n",
               bytes / 1024, gloo, gigabytes / gloo, shared, gigabytes / shared, gloo / shared);
    std::fflush(stdout);
  }
  for (Way& way : ways) way.microseconds.clear();
}

void run_rank(int rank, const Settings& settings, const std::vector<int>& sockets) {
  torch::set_num_threads(1);
  LaunchEnvironment environment;
  environment.rank = environment.local_rank = rank;
  environment.size = environment.local_size = settings.ranks;
  environment.master_address = "127.0.0.1";
  environment.run_id = "benchmark";
  std::vector<Way> ways;
  for (bool shared : {false, true}) {
    int socket = sockets[shared ? 1 : 0];
    environment.master_port = port_of(socket);
    environment.store_descriptor = rank == 0 ? socket : -1;
    WorldOptions options;
    options.shared_memory = shared;
    ways.push_back({std::make_unique<World>(environment, options)});
  }
  if (rank == 0) {
    fmt::print("{} ranks, {}; a call of the slowest rank, median\n{:>11}  {:>25}  {:>25}  {:>6}\n",
               settings.ranks, settings.type == torch::kBFloat16 ? "bf16" : "fp32", "size", "Gloo",
               "shared memory", "ratio");
  }
  for (int64_t kilobytes : {4, 64, 1024, 16 << 10, 64 << 10, 256 << 10}) {
    measure(ways, kilobytes << 10, settings);
  }
}

int run(const Settings& settings) {
  std::vector<int> sockets{listen_on("127.0.0.1", 0), listen_on("127.0.0.1", 0)};
  std::vector<pid_t> children;
  for (int rank = 1; rank < settings.ranks; ++rank) {
    pid_t child = fork();
    if (child < 0) throw MachineError("no process");
    if (child == 0) {
      run_rank(rank, settings, sockets);
      return kExitOk;
    }
    children.push_back(child);
  }
  run_rank(0, settings, sockets);
  int worst = kExitOk;
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) worst = kExitMachine;
  }
  return worst;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  lockstep::Settings settings;
  if (argc > 1) settings.ranks = std::max(2, std::atoi(argv[1]));
  if (argc > 2 && std::string(argv[2]) == "bf16") settings.type = torch::kBFloat16;
  if (argc > 3) settings.seconds = std::atof(argv[3]);
  try {
    return lockstep::run(settings);
  } catch (const lockstep::Error& error) {
    fmt::print(stderr, "{}\n", error.describe());
    return error.exit_code();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return lockstep::kExitInternal;
  }
}
