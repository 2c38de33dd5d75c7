// What heartbeats and accounts cost a step: the marks of phases, operations and exchanges, and the
// beats themselves.
//
//     build/benchmarks/progress_marks
//
// Prints the time of each mark, of a step's worth of them (8 phases, 16 operations with their
// waits and exchanges), without and with spans being recorded, and of one beat with its judgement;
// the last as a share of the half second between two.
#include <fmt/format.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/host_usage.h"
#include "dist/liveness/failure_detector.h"
#include "dist/liveness/heartbeat_wire.h"

namespace {

using namespace lockstep;
using Clock = std::chrono::steady_clock;

// Nanoseconds of one call: the best of five, after one to warm up.
template <typename Work>
double nanoseconds(int count, const Work& work) {
  double best = 1e300;
  for (int trial = 0; trial < 6; ++trial) {
    auto start = Clock::now();
    for (int i = 0; i < count; ++i) work();
    std::chrono::duration<double, std::nano> passed = Clock::now() - start;
    if (trial > 0) best = std::min(best, passed.count() / count);
  }
  return best;
}

}  // namespace

int main() {
  RankProgress progress;
  const std::string name = "all-reduce of gradient bucket 3";
  uint64_t sequence = 0;
  double phase = nanoseconds(100000, [&] { progress.enter(Phase::kForward); });
  double operation =
      nanoseconds(100000, [&] { sequence = progress.start_operation(name, 1 << 20, "fp32"); });
  double wait = nanoseconds(100000, [&] { RankProgress::Waiting waiting(progress, sequence); });
  StepAccount& account = progress.account();
  double exchange = nanoseconds(100, [&] {
    const auto now = Clock::now();
    account.exchange(name, now, Clock::now(), 1 << 20);
  });
  int64_t steps = 0;
  constexpr Phase kStep[] = {Phase::kData,    Phase::kOther,    Phase::kForward, Phase::kBackward,
                             Phase::kForward, Phase::kBackward, Phase::kWait,    Phase::kOptimizer};
  auto take_step = [&] {
    progress.begin_step(++steps, 0);
    for (Phase p : kStep) {
      progress.enter(p);
      for (int i = 0; i < 2; ++i) {
        const auto begin = Clock::now();
        {
          RankProgress::Waiting waiting(progress, progress.start_operation(name, 1 << 20, "fp32"));
        }
        account.exchange(name, begin, Clock::now(), 1 << 20);
      }
    }
    static_cast<void>(account.so_far());  // as a step's record does, twice
    static_cast<void>(account.so_far());
    progress.end_step({.steps = 1});
  };
  double step = nanoseconds(10000, take_step);
  account.recorder().plan(steps + 1, steps + 6000);
  double recorded = nanoseconds(1000, take_step);
  fmt::print(
      "phase {:.0f} ns, operation {:.0f} ns, wait {:.0f} ns, exchange {:.0f} ns, a step of 8 and "
      "16: {:.2f} us, while spans are recorded {:.2f} us\n",
      phase, operation, wait, exchange, step / 1000, recorded / 1000);

  constexpr int kRanks = 64;
  FailureDetector judge({}, progress);
  std::vector<RankSeen> ranks(kRanks);
  HostUsage usage({.interface = "lo", .machine = false, .root = "", .nvml = ""});
  double sample = nanoseconds(50, [&] { ranks[0].status.usage = usage.sample(); });
  for (int r = 0; r < kRanks; ++r) {
    ranks[r].identity.rank = r;
    ranks[r].presence = Presence::kHere;
    ranks[r].operations = progress.operations(32);
  }
  double judged = nanoseconds(1000, [&] {
    const auto now = Clock::now();
    for (RankSeen& r : ranks) r.seen = now;
    if (judge.judge(ranks, now) || judge.warning(ranks, now)) std::abort();
  });
  double beat = nanoseconds(1000, [&] {
    BeatWriter body;
    body.add(ranks[0].status);
    for (const OperationRecord& o : progress.operations(32)) body.add(o);
  });
  fmt::print(
      "beat {:.1f} us (twice a second), sample of the host {:.0f} us (once), judgement of {} "
      "ranks {:.1f} us (4 times)\n",
      beat / 1000, sample / 1000, kRanks, judged / 1000);
  fmt::print("of one core: {:.4f} % a rank, {:.4f} % more on rank 0\n", (2 * beat + sample) * 1e-7,
             4 * judged * 1e-7);
}
