#include "dist/collectives/exchange_timing.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <span>
#include <thread>
#include <vector>

#include "base/statistics.h"

namespace lockstep {

namespace {

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

ExchangeTime time_exchange(World& world, const ExchangeRequest& request) {
  using Clock = std::chrono::steady_clock;
  std::vector<torch::Tensor> parts;
  for (const int64_t bytes : request.sums) {
    parts.push_back(torch::zeros({std::max<int64_t>(1, bytes / 4)}));
  }
  std::vector<Completion> running;
  std::vector<double> seconds, cpu;
  const Clock::time_point end = Clock::now() + request.limit;
  world.barrier();
  // As in a step: what is measured, a small sum, a pause. Nothing else keeps the link busy.
  for (int i = 0; i < request.repeats; ++i) {
    std::this_thread::sleep_for(request.pause);
    const double cpu_before = cpu_seconds();
    const Clock::time_point start = Clock::now();
    for (const torch::Tensor& part : parts) {
      running.push_back(world.start_all_reduce_sum(part, "timed sum"));
    }
    for (const Completion& completion : running) completion();
    running.clear();
    // Means over the ranks: a rank that starts late finds the others' numbers there, and its sum is
    // as much shorter as theirs are longer from waiting for it. So the mean is the time of a sum
    // that all start together.
    std::array<double, 3> of_all = {std::chrono::duration<double>(Clock::now() - start).count(),
                                    cpu_seconds() - cpu_before, Clock::now() > end ? 1.0 : 0.0};
    world.start_all_reduce_sum(std::span<double>(of_all), "timed sum's figures")();
    const bool over = of_all[2] > 0;  // over on any rank: all stop together
    seconds.push_back(of_all[0] / world.size());
    cpu.push_back(of_all[1] / world.size());
    if (over) break;
  }
  const auto settling = static_cast<std::ptrdiff_t>(seconds.size() / 2);
  seconds.erase(seconds.begin(), seconds.begin() + settling);
  cpu.erase(cpu.begin(), cpu.begin() + settling);
  return {.repeats = static_cast<int>(seconds.size()),
          .seconds = median(seconds),
          .cpu_seconds = median(cpu)};
}

}  // namespace lockstep
