// What one rank of a machine samples reaches rank 0 with the heartbeats, over a real connection.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "dist/liveness/heartbeat.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

bool wait_until_known(World& world, const std::function<bool(const RankSeen&)>& known, int rank) {
  for (const auto end = Clock::now() + std::chrono::seconds{8}; Clock::now() < end;) {
    if (known(world.heartbeat().ranks()[static_cast<std::size_t>(rank)])) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  }
  return false;
}

TEST(MachineFigures, OfOtherMachinesReachRankZero) {
  expect_all_well(run_processes(2, [](const LaunchEnvironment& given) {
    LaunchEnvironment environment = given;
    environment.local_rank = 0;  // as if each were the first on a machine of its own
    World world(environment, RanksOptions{}.world);
    if (world.rank() == 0) {
      for (int rank : {0, 1}) {
        EXPECT_TRUE(wait_until_known(
            world,
            [](const RankSeen& r) { return r.machine.samples > 1 && r.status.usage.samples > 1; },
            rank));
      }
      const MachineFigures other = world.heartbeat().ranks()[1].machine;
      EXPECT_GT(other.cores, 0);
      EXPECT_GT(other.memory_bytes, 0);
      EXPECT_GT(other.seconds, 0);
    }
    world.barrier();
  }));
}

TEST(MachineFigures, AreSampledByOneRankOfAMachine) {
  expect_all_well(run_ranks(2, [](World& world) {
    if (world.rank() == 0) {
      auto sampled = [](const RankSeen& r) { return r.status.usage.samples > 1; };
      EXPECT_TRUE(wait_until_known(world, sampled, 1));
      EXPECT_EQ(world.heartbeat().ranks()[1].machine.samples, 0u);
      EXPECT_GT(world.heartbeat().ranks()[0].machine.samples, 0u);
    }
    world.barrier();
  }));
}

}  // namespace
}  // namespace lockstep
