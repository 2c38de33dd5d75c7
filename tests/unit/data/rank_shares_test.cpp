#include "data/steps/rank_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

std::vector<int64_t> some_costs(std::size_t count, uint64_t seed) {
  std::vector<int64_t> out;
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back(1 + static_cast<int64_t>(mix64(seed * 1000 + i) % 90));
  }
  std::sort(out.rbegin(), out.rend());
  return out;
}

// How steps were divided before ranks had shares: to the part with the least load, the first first.
std::vector<int64_t> divide_equally(const std::vector<int64_t>& costs, std::size_t parts) {
  std::vector<int64_t> load(parts, 0), out;
  for (int64_t cost : costs) {
    const auto least = std::min_element(load.begin(), load.end()) - load.begin();
    load[static_cast<std::size_t>(least)] += cost;
    out.push_back(least);
  }
  return out;
}

std::vector<double> filled(const StepParts& parts, const std::vector<int64_t>& costs,
                           std::size_t ranks) {
  std::vector<double> out(ranks, 0);
  const std::vector<int64_t> part_of = parts.spread(costs);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    out[static_cast<std::size_t>(parts.rank_of(part_of[i]))] += static_cast<double>(costs[i]);
  }
  return out;
}

TEST(StepParts, OfEqualSharesAreThoseOfAnEqualDivision) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto ranks = static_cast<int64_t>(1 + seed % 5),
               micro = static_cast<int64_t>(1 + seed % 3);
    const StepParts parts(equal_shares(ranks, micro));
    ASSERT_EQ(parts.count(), ranks * micro);
    const std::vector<int64_t> costs = some_costs(seed % 40, seed);
    EXPECT_EQ(parts.spread(costs), divide_equally(costs, static_cast<std::size_t>(ranks * micro)));
    const auto items = static_cast<int64_t>(seed * 7 % 100);
    for (int64_t part = 0; part < parts.count(); ++part) {
      EXPECT_EQ(parts.rank_of(part), part % ranks);
      const StepParts::Range range = parts.range(items, part);
      EXPECT_EQ(range.begin, items * part / parts.count());
      EXPECT_EQ(range.end, items * (part + 1) / parts.count());
    }
  }
}

TEST(StepParts, FollowTheWeightsWhateverTheMicroBatches) {
  const RankShares shares = {{1714, 2}, {857, 1}, {429, 3}};
  const StepParts parts(shares);
  const std::vector<int64_t> costs = some_costs(300, 7);
  const double all = static_cast<double>(std::accumulate(costs.begin(), costs.end(), int64_t{0}));
  const std::vector<double> load = filled(parts, costs, 3);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_NEAR(load[rank] / all, parts_of_one(shares)[rank], 0.01) << rank;
    EXPECT_EQ(std::ssize(parts.of_rank(static_cast<int>(rank))), shares[rank].micro_batches);
  }
}

TEST(StepParts, EachItemIsInOneOfThem) {
  for (int64_t items = 0; items < 60; ++items) {
    const StepParts parts(RankShares{{3000, 2}, {17, 1}, {400, 4}});
    int64_t end = 0, empty = 0;
    for (int64_t part = 0; part < parts.count(); ++part) {
      const StepParts::Range range = parts.range(items, part);
      EXPECT_EQ(range.begin, end);
      end = range.end;
      empty += range.begin == range.end ? 1 : 0;
    }
    EXPECT_EQ(end, items);
    EXPECT_EQ(empty > 0, items < parts.count());
  }
}

TEST(StepParts, AreOnlyEmptyWhenThereAreFewerItems) {
  const RankShares shares = {{2990, 1}, {9, 1}, {1, 2}};
  const StepParts parts(shares);
  for (std::size_t items = 1; items < 20; ++items) {
    std::vector<int64_t> counts(4, 0);
    for (int64_t part : parts.spread(some_costs(items, items))) ++counts[part];
    EXPECT_EQ(std::count(counts.begin(), counts.end(), 0),
              std::max<std::ptrdiff_t>(0, 4 - static_cast<std::ptrdiff_t>(items)));
  }
}

TEST(SharesConfig, SaysWhatItExpects) {
  for (const char* right : {"equal", "speed", "10:9:5", "1:1", "1:1000000"}) {
    EXPECT_EQ(SharesConfig{right}.check(), "") << right;
  }
  for (const char* wrong :
       {"", "fast", "10", "10:", "10:0", "10:-1", "10:1.5", "10:1000001", "a:b"}) {
    EXPECT_NE(SharesConfig{wrong}.check().find("expected equal, speed, or a whole number"),
              std::string::npos)
        << wrong;
  }
  EXPECT_NE(SharesConfig{"sped"}.check().find("did you mean speed?"), std::string::npos);
}

TEST(SharesConfig, AListHasANumberForEachRank) {
  const RankShares shares = listed_shares({10, 9, 5}, 3, 2);
  EXPECT_EQ(shares, (RankShares{{1250, 2}, {1125, 2}, {625, 2}}));
  EXPECT_EQ(listed_shares({7, 7}, 2, 1), equal_shares(2, 1));
  EXPECT_EQ(shares_text(shares), "41.7 % in 2, 37.5 % in 2 and 20.8 % in 2");
  try {
    listed_shares({10, 9, 5}, 2, 1);
    FAIL() << "two ranks cannot have three shares";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "batch.shares: 3 numbers, but there are 2 ranks: expected one for each");
  }
}

}  // namespace
}  // namespace lockstep
