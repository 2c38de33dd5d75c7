#include "base/usable_cores.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/file.h"

namespace lockstep {
namespace {

using Cores = std::vector<int>;

Cores first_cores(int count) {
  Cores out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

// A machine of two nodes whose hyper-threads are numbered after all cores, and a node of memory
// alone.
class TwoNodes : public ::testing::Test {
 protected:
  TwoNodes() {
    put("sys/devices/system/node/node0/cpulist", "0-3,8-11\n");
    put("sys/devices/system/node/node1/cpulist", "4-7,12-15\n");
    put("sys/devices/system/node/node2/cpulist", "\n");
    put("sys/devices/system/node/possible", "0-2\n");
  }
  void put(const std::string& path, const std::string& text) {
    fs::create_directories((folder_.path() / path).parent_path());
    write_file(folder_.path() / path, text);
  }
  CoreFacts facts(const Cores& cores) const { return core_facts(cores, folder_.path().string()); }

  TemporaryFolder folder_;
};

TEST_F(TwoNodes, AreFoundWithTheUsableCoresOfEach) {
  const CoreFacts all = facts(first_cores(16));
  EXPECT_EQ(all.nodes,
            (std::vector<Cores>{{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}}));
  EXPECT_EQ(all.cores(), 16);
  EXPECT_EQ(all.threads(), 16);
  const CoreFacts some = facts({2, 3, 4});
  EXPECT_EQ(some.nodes, (std::vector<Cores>{{2, 3}, {4}}));
}

TEST_F(TwoNodes, RanksGetCoresOfOneNodeEach) {
  const CoreFacts all = facts(first_cores(16));
  EXPECT_EQ(cores_of_rank(all, 2, 0), (Cores{0, 1, 2, 3, 8, 9, 10, 11}));
  EXPECT_EQ(cores_of_rank(all, 2, 1), (Cores{4, 5, 6, 7, 12, 13, 14, 15}));
  EXPECT_EQ(cores_of_rank(all, 4, 1), (Cores{8, 9, 10, 11}));
  EXPECT_EQ(cores_of_rank(all, 4, 2), (Cores{4, 5, 6, 7}));
  // Three have no nodes of their own: parts of all, node after node.
  EXPECT_EQ(cores_of_rank(all, 3, 0), (Cores{0, 1, 2, 3, 8}));
  EXPECT_EQ(cores_of_rank(all, 3, 2), (Cores{6, 7, 12, 13, 14}));
}

TEST_F(TwoNodes, OneTooSmallForItsRanksSharesWithTheOther) {
  EXPECT_EQ(cores_of_rank(facts({0, 1, 2, 4}), 4, 3), (Cores{4}));
}

TEST(UsableCores, WithoutNodesAreOneNode) {
  const CoreFacts facts = core_facts(first_cores(3), "/no/such/root");
  EXPECT_EQ(facts.nodes, (std::vector<Cores>{{0, 1, 2}}));
  EXPECT_EQ(cores_of_rank(facts, 3, 2), (Cores{2}));
  EXPECT_EQ(cores_of_rank(facts, 2, 1), (Cores{1}));
}

TEST(UsableCores, GiveAsManyThreadsAsALimitLetsBeBusy) {
  auto threads = [](int cores, double limit) {
    return CoreFacts{.nodes = {first_cores(cores)}, .limit = limit}.threads();
  };
  EXPECT_EQ(threads(1, 0), 1);
  EXPECT_EQ(threads(3, 0), 3);
  EXPECT_EQ(threads(64, 0), 64);
  EXPECT_EQ(threads(8, 1.5), 2);
  EXPECT_EQ(threads(8, 1.25), 1);
  EXPECT_EQ(threads(8, 0.2), 1);
  EXPECT_EQ(threads(1, 1.5), 1);
  EXPECT_EQ(threads(2, 16), 2);
}

TEST(UsableCores, AreSharedOutToRanks) {
  EXPECT_EQ(threads_of_rank(64, 2), 32);
  EXPECT_EQ(threads_of_rank(3, 2), 1);
  EXPECT_EQ(threads_of_rank(1, 4), 1);
}

TEST(UsableCores, OfThisProcessAreSome) {
  EXPECT_FALSE(usable_cores().empty());
  EXPECT_GE(usable_threads(), 1);
  EXPECT_LE(usable_threads(), static_cast<int>(usable_cores().size()));
}

}  // namespace
}  // namespace lockstep
