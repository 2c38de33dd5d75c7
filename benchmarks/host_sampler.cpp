// What sampling a host costs: one sample of a rank, one of a machine, and the sampler's thread.
//
//     build/benchmarks/host_sampler [INTERFACE] [SECONDS]      # lo, 10
//
// Prints processor time of a sample (the best of five runs of 20), what its parts are, and the
// share of one core that the thread takes at one sample a second, which has to stay below 0.5 %.
// With GPUs the driver's answers are in it; LOCKSTEP_NVML=none leaves them out.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>

#include "base/host_sampler.h"

namespace {

using namespace lockstep;

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Microseconds of processor time of one call: the best of five runs, after one to warm up.
template <typename Work>
double microseconds(const Work& work) {
  constexpr int kCalls = 20;
  double best = 1e300;
  for (int trial = 0; trial < 6; ++trial) {
    const double start = cpu_seconds();
    for (int i = 0; i < kCalls; ++i) work();
    if (trial > 0) best = std::min(best, (cpu_seconds() - start) / kCalls);
  }
  return best * 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string interface = argc > 1 ? argv[1] : "lo";
  const int seconds = argc > 2 ? std::atoi(argv[2]) : 10;
  HostUsage rank({.interface = interface, .machine = false, .root = "", .nvml = ""});
  HostUsage machine({.interface = interface});
  fmt::print("a rank's sample {:.0f} us, a machine's {:.0f} us ({} cores, {} GPUs)\n",
             microseconds([&] { rank.sample(); }), microseconds([&] { machine.sample(); }),
             machine.sample().cores, machine.machine().gpus);
  for (const char* file : {"/proc/stat", "/proc/self/status", "/proc/self/io", "/proc/meminfo",
                           "/proc/net/dev", "/proc/net/snmp", "/proc/diskstats"}) {
    fmt::print("  {:<18} {:.0f} us\n", file, microseconds([&] { small_file(file); }));
  }
  HostSampler sampler({.interface = interface});
  const double start = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::seconds{seconds});
  fmt::print("the thread: {:.3f} % of one core over {} s\n",
             100 * (cpu_seconds() - start) / seconds, seconds);
}
