#include "base/host_sampler.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

HostUsageOptions options() {
  return {.interface = "lo", .machine = true, .root = "", .nvml = LOCKSTEP_FAKE_NVML};
}

TEST(HostSampler, SamplesAgainAndAgain) {
  HostSampler sampler(options(), milliseconds{50});
  uint64_t first = 0, last = 0;
  for (const auto end = Clock::now() + std::chrono::seconds{10}; Clock::now() < end && last < 4;) {
    std::this_thread::sleep_for(milliseconds{10});
    const HostSample newest = sampler.newest();
    if (first == 0) first = newest.process.samples;
    last = newest.process.samples;
    EXPECT_EQ(newest.machine.samples, last);
  }
  EXPECT_GE(last, 4u);
  EXPECT_GT(sampler.newest().process.resident_bytes, 1 << 20);
  EXPECT_EQ(sampler.newest().machine.gpus, 2);
}

TEST(HostSampler, EndsAtOnce) {
  const auto start = Clock::now();
  { HostSampler sampler(options(), std::chrono::seconds{60}); }
  EXPECT_LT(Clock::now() - start, milliseconds{1500});
}

TEST(HostSampler, DoesNotWaitForADriverThatHangs) {
  setenv("FAKE_NVML", "hangs", 1);
  const auto start = Clock::now();
  {
    HostSampler sampler(options(), milliseconds{50});
    EXPECT_EQ(sampler.newest().process.samples, 0u);
    EXPECT_EQ(sampler.newest().process.process_cores, 0);
    EXPECT_GT(sampler.newest().process.resident_bytes, 1 << 20) << "known at once";
    EXPECT_LT(Clock::now() - start, milliseconds{1000}) << "nor does who asks";
  }
  EXPECT_LT(Clock::now() - start, milliseconds{4500});
  unsetenv("FAKE_NVML");
}

// The limit of the design is 0.5 % (benchmarks/host_sampler.cpp measures it); processor time, so
// that a loaded machine does not matter.
TEST(HostSampler, TakesLittleOfACore) {
  HostSampler sampler(options());
  double seconds = 0, taken = 0;
  uint64_t seen = 0;
  for (const auto end = Clock::now() + milliseconds{3300}; Clock::now() < end;) {
    std::this_thread::sleep_for(milliseconds{50});
    const MachineFigures m = sampler.newest().machine;
    if (m.samples == seen) continue;
    seen = m.samples;
    seconds += m.seconds;
    taken += m.seconds * m.sampler_share;
  }
  ASSERT_GE(seen, 2u);
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken / seconds, 0.02);
}

}  // namespace
}  // namespace lockstep
