#include "train/parts/replicas.h"

#include <gtest/gtest.h>

#include "support/ranks.h"

namespace lockstep {
namespace {

std::vector<Replica> arrays() {
  return {{"the weights", torch::arange(100, torch::kFloat)},
          {"optimizer.moment", torch::ones({50})}};
}

void flip(const torch::Tensor& tensor, int64_t at, int bit) {
  tensor.view(torch::kInt32)[at].bitwise_xor_(1 << bit);
}

TEST(Replicas, ThatAreEqualAreNotTouched) {
  expect_all_well(
      run_ranks(3, [](World& world) { EXPECT_TRUE(find_unequal(world, arrays()).empty()); }));
}

TEST(Replicas, AnyFlippedBitOfTheFewNamesTheRankAndIsMended) {
  expect_all_well(run_ranks(3, [](World& world) {
    for (int bit = 0; bit < 32; ++bit) {
      const std::vector<Replica> mine = arrays(), right = arrays();
      if (world.rank() == bit % 3) flip(mine[static_cast<std::size_t>(bit % 2)].data, bit, bit);
      const UnequalRanks found = find_unequal(world, mine);
      ASSERT_FALSE(found.empty());
      EXPECT_EQ(found.ranks, std::vector<int>{bit % 3});
      EXPECT_EQ(found.good, bit % 3 == 0 ? 1 : 0);
      EXPECT_EQ(found.arrays,
                std::vector<std::string>{bit % 2 == 0 ? "the weights" : "optimizer.moment"});
      mend(world, mine, found);
      for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(torch::equal(mine[i].data, right[i].data));
    }
  }));
}

TEST(Replicas, WithoutAMajorityNobodyIsRight) {
  expect_all_well(run_ranks(2, [](World& world) {
    const std::vector<Replica> mine = arrays();
    if (world.rank() == 1) flip(mine[0].data, 7, 12);
    const UnequalRanks found = find_unequal(world, mine);
    EXPECT_EQ(found.good, -1);
    EXPECT_EQ(found.ranks, (std::vector<int>{0, 1}));
    EXPECT_NE(found.text.find("hold different bits in the weights"), std::string::npos);
  }));
}

}  // namespace
}  // namespace lockstep
