#include "launch/job/rank_layout.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::string chosen(const HostResources& host, const LayoutWishes& wishes = {}) {
  return choose_layout(host, wishes).text();
}

TEST(RankLayout, OfOneNodeIsOneRankWithAllCores) {
  EXPECT_EQ(chosen({.node_cores = {1}}), "1 rank x 1 thread: 1 core");
  EXPECT_EQ(chosen({.node_cores = {2}}), "1 rank x 2 threads: 2 cores");
  EXPECT_EQ(chosen({.node_cores = {3}}), "1 rank x 3 threads: 3 cores");
  EXPECT_EQ(chosen({.node_cores = {64}}), "1 rank x 64 threads: 64 cores");
  EXPECT_FALSE(choose_layout({.node_cores = {64}}, {}).pin);
}

TEST(RankLayout, OfSeveralNodesIsARankEachWithCoresOfItsOwn) {
  const RankLayout two = choose_layout({.node_cores = {4, 4}}, {});
  EXPECT_EQ(two.text(), "2 ranks x 4 threads: 2 NUMA nodes of 4 cores");
  EXPECT_TRUE(two.pin);
  EXPECT_EQ(chosen({.node_cores = {16, 16, 16, 16}}),
            "4 ranks x 16 threads: 4 NUMA nodes of 16 cores");
}

// Ranks have equal work: the smaller node's would let the other wait.
TEST(RankLayout, OfUnequalNodesIsOneRank) {
  const RankLayout layout = choose_layout({.node_cores = {3, 1}}, {});
  EXPECT_EQ(layout.text(), "1 rank x 4 threads: NUMA nodes of 3 and 1 cores");
  EXPECT_FALSE(layout.pin);
}

TEST(RankLayout, FollowsALimitOfTheControlGroup) {
  EXPECT_EQ(chosen({.node_cores = {8}, .core_limit = 1.5}),
            "1 rank x 2 threads: 8 cores, of which its control group lets 1.5 be busy");
  EXPECT_EQ(chosen({.node_cores = {8}, .core_limit = 0.5}),
            "1 rank x 1 thread: 8 cores, of which its control group lets 0.5 be busy");
  EXPECT_EQ(chosen({.node_cores = {2}, .core_limit = 16}), "1 rank x 2 threads: 2 cores");
  // One node's cores are enough for it, or they are not.
  EXPECT_EQ(chosen({.node_cores = {32, 32}, .core_limit = 1.5}),
            "1 rank x 2 threads: 2 NUMA nodes of 32 cores, of which its control group lets 1.5 be "
            "busy");
  EXPECT_EQ(chosen({.node_cores = {32, 32}, .core_limit = 40}),
            "2 ranks x 20 threads: 2 NUMA nodes of 32 cores, of which its control group lets 40 be "
            "busy");
}

TEST(RankLayout, IsARankAGpu) {
  const RankLayout one = choose_layout({.node_cores = {8}, .gpus = 1, .gpus_seen = 1}, {});
  EXPECT_EQ(one.text(), "1 rank x 8 threads: 1 GPU");
  EXPECT_EQ(chosen({.node_cores = {24, 24}, .gpus = 4, .gpus_seen = 4}),
            "4 ranks x 12 threads: 4 GPUs");
  EXPECT_EQ(chosen({.node_cores = {2}, .gpus = 8, .gpus_seen = 8}), "8 ranks x 1 thread: 8 GPUs");
  EXPECT_FALSE(choose_layout({.node_cores = {24, 24}, .gpus = 4, .gpus_seen = 4}, {}).pin);
}

TEST(RankLayout, LeavesGpusAloneOnTheCpu) {
  EXPECT_EQ(chosen({.node_cores = {8}, .gpus = 2, .gpus_seen = 2}, {.gpus = false}),
            "1 rank x 8 threads: 8 cores; 2 GPUs left alone, as run.device says");
}

TEST(RankLayout, SaysWhyGpusThatAreThereAreNotUsed) {
  EXPECT_EQ(chosen({.node_cores = {8}, .gpus_seen = 1, .why_no_gpu = "no module for CUDA"}),
            "1 rank x 8 threads: 8 cores; 1 GPU, but none can be used: no module for CUDA");
}

TEST(RankLayout, TellsThreadsThatTheEnvironmentSays) {
  EXPECT_EQ(chosen({.node_cores = {8}}, {.threads = 3}),
            "1 rank x 3 threads: 8 cores; OMP_NUM_THREADS=3");
}

TEST(RankLayout, IsMadeOfWhatAMachineTells) {
  const Json facts = {{"node_cores", {4, 4}},
                      {"core_limit", 1.5},
                      {"compute", {{"gpus", 0}, {"gpus_seen", 2}, {"why_no_gpu", "no driver"}}}};
  const HostResources host = HostResources::of(facts);
  EXPECT_EQ(host.node_cores, (std::vector<int>{4, 4}));
  EXPECT_EQ(host.core_limit, 1.5);
  EXPECT_EQ(host.gpus, 0);
  EXPECT_EQ(host.gpus_seen, 2);
  EXPECT_EQ(host.why_no_gpu, "no driver");
  EXPECT_ERROR(HostResources::of({{"versions", {{"lockstep", "0.0.9"}}}}), MachineError,
               "lockstep 0.0.9 there does not tell");
}

TEST(RankLayout, HostsWithANumberAreNotAsked) {
  HostList hosts;
  hosts.hosts = {{.name = "no-such-host", .slots = 2}};
  EXPECT_TRUE(settle_slots(hosts, {}, {}).empty());
  EXPECT_EQ(hosts.ranks(), 2);
}

}  // namespace
}  // namespace lockstep
