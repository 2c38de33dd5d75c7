#include "base/host_usage.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

TEST(HostUsage, SeesThisProcessComputeAndSleep) {
  HostUsage usage("");
  auto end = Clock::now() + std::chrono::milliseconds{300};
  double sum = 0;
  while (Clock::now() < end) sum += std::sqrt(sum + 2);
  HostFigures busy = usage.sample();
  std::this_thread::sleep_for(std::chrono::milliseconds{300});
  HostFigures idle = usage.sample();
  EXPECT_GT(sum, 0);
  EXPECT_GT(busy.process_cores, 0.05);  // a share of a core at least, however loaded it is
  EXPECT_LT(busy.process_cores, 1.3);
  EXPECT_LT(idle.process_cores, busy.process_cores / 2);
}

TEST(HostUsage, KnowsTheMachine) {
  HostUsage usage("lo");
  std::this_thread::sleep_for(std::chrono::milliseconds{50});
  HostFigures figures = usage.sample();
  EXPECT_GT(figures.cores, 0);
  EXPECT_GE(figures.cores, figures.usable_cores);
  EXPECT_GE(figures.machine_share, 0);
  EXPECT_LE(figures.machine_share, 1);
  EXPECT_EQ(usage.busy_cores().size(), static_cast<std::size_t>(figures.cores));
  EXPECT_GT(figures.resident_bytes, 1 << 20);
  EXPECT_GT(figures.available_bytes, figures.resident_bytes / 100);
  EXPECT_GT(figures.memory_bytes, figures.available_bytes);
  EXPECT_EQ(std::strcmp(figures.interface, "lo"), 0);
  EXPECT_EQ(figures.link_bytes_per_second, 0);  // a loopback has no speed
  EXPECT_GT(free_disk_bytes("/"), 0);
}

TEST(HostUsage, WhatIsNotThereIsZero) {
  HostUsage usage("no-such-interface");
  HostFigures figures = usage.sample();
  EXPECT_EQ(figures.in_bytes_per_second, 0);
  EXPECT_EQ(figures.link_bytes_per_second, 0);
  EXPECT_EQ(free_disk_bytes("/no/such/folder"), -1);
}

}  // namespace
}  // namespace lockstep
