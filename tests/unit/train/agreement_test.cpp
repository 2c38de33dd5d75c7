#include "train/parts/agreement.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "support/ranks.h"

namespace lockstep {
namespace {

// What check_any_ranks() says on rank 0 of as many ranks as there are machines, each on the machine
// of that name.
std::vector<RankResult> any_ranks(std::vector<std::string> machines, bool equal_threads = true,
                                  torch::Device device = torch::kCPU) {
  const auto size = static_cast<int>(machines.size());
  return run_ranks(size,
                   [&](World& world) {
                     if (!equal_threads && world.rank() == 1) at::set_num_threads(2);
                     check_any_ranks(world, device);
                   },
                   {.machines = std::move(machines)});
}

void expect_refused(const std::vector<RankResult>& ranks, const std::string& says) {
  for (const RankResult& rank : ranks) {
    EXPECT_EQ(rank.exit_code, kExitConfig) << rank.text;
    EXPECT_NE(rank.text.find(says), std::string::npos) << rank.text;
  }
}

TEST(AnyRanksChecks, TakeMachinesWithAsManyNeighboursEach) {
  for (const std::vector<std::string>& machines :
       {std::vector<std::string>{"a", "a"}, {"a", "a", "b", "b"}, {"a", "b"}}) {
    for (const RankResult& rank : any_ranks(machines)) EXPECT_EQ(rank.exit_code, 0) << rank.text;
  }
}

TEST(AnyRanksChecks, RefuseMachinesThatDifferAndRanksThatDoNotFollowEachOther) {
  expect_refused(any_ranks({"a", "a", "b"}), "machines need as many ranks each");
  expect_refused(any_ranks({"a", "b", "a", "b"}), "with numbers that follow each other");
}

TEST(AnyRanksChecks, RefuseThreadsThatDiffer) {
  expect_refused(any_ranks({"a", "a"}, false), "ranks have different numbers of threads, here ");
}

TEST(AnyRanksChecks, RefuseGpus) {
  expect_refused(any_ranks({"a", "a"}, true, torch::Device(torch::kCUDA, 0)), "only on CPUs");
}

TEST(Agreement, AFailureOfOneRankIsAllRanksAndNamesIt) {
  const auto ranks = run_ranks(2, [](World& world) {
    together(world, [&] {
      if (world.rank() == 1) throw DataError("this file is damaged");
    });
  });
  for (const RankResult& rank : ranks) {
    EXPECT_EQ(rank.exit_code, kExitData);
    EXPECT_NE(rank.text.find("this file is damaged"), std::string::npos) << rank.text;
  }
  EXPECT_EQ(ranks[0].text.rfind("rank 1 on ", 0), 0u) << ranks[0].text;
}

}  // namespace
}  // namespace lockstep
