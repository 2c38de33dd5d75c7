#include "tasks/sentence_groups.h"

#include <gtest/gtest.h>

#include <set>

namespace lockstep {
namespace {

std::vector<std::vector<int32_t>> sentences(const std::vector<std::size_t>& lengths) {
  std::vector<std::vector<int32_t>> out;
  for (std::size_t length : lengths) out.emplace_back(length, 5);
  return out;
}

TEST(SentenceGroups, HoldEverySentenceOnceWithinTheTokens) {
  auto sources = sentences({3, 9, 1, 0, 4, 4, 30, 2, 8, 0, 7});
  auto groups = group_by_length(sources, 20);
  std::multiset<std::size_t> seen;
  for (const SentenceGroup& group : groups) {
    seen.insert(group.begin(), group.end());
    std::size_t longest = sources[group.front()].size() + 1;
    for (std::size_t s : group) EXPECT_LT(sources[s].size(), longest);
    EXPECT_TRUE(group.size() == 1 || group.size() * longest <= 20u);
  }
  EXPECT_EQ(seen, (std::multiset<std::size_t>{0, 1, 2, 4, 5, 6, 7, 8, 10}));
}

TEST(SentenceGroups, GoToTheRanksOnceEachAndEvenly) {
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < 500; ++i) lengths.push_back(1 + i * 7 % 40);
  auto sources = sentences(lengths);
  auto groups = group_by_length(sources, 256);
  for (int size : {1, 2, 3, 7, 100}) {
    std::multiset<std::size_t> seen;
    std::size_t most = 0, tokens = 0;
    for (int rank = 0; rank < size; ++rank) {
      std::size_t load = 0;
      for (std::size_t g : own_groups(groups, sources, {rank, size})) {
        seen.insert(g);
        load += groups[g].size() * sources[groups[g].front()].size();
      }
      most = std::max(most, load);
      tokens += load;
    }
    EXPECT_EQ(seen.size(), groups.size()) << size << " ranks";
    EXPECT_EQ(std::set<std::size_t>(seen.begin(), seen.end()).size(), groups.size());
    if (size <= 7) {
      EXPECT_LE(most, tokens / static_cast<std::size_t>(size) + 256);
    }
  }
}

TEST(SentenceGroups, NothingIsNoGroup) {
  EXPECT_TRUE(group_by_length(sentences({}), 10).empty());
  EXPECT_TRUE(group_by_length(sentences({0, 0}), 10).empty());
  EXPECT_TRUE(own_groups({}, {}, {1, 3}).empty());
}

}  // namespace
}  // namespace lockstep
