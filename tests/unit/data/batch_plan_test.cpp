#include "data/parallel/batch_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/prefetcher.h"
#include "base/random.h"

namespace lockstep {
namespace {

std::vector<PairLength> some_lengths(int n) {
  std::vector<PairLength> out;
  for (int i = 0; i < n; ++i) {
    auto length = static_cast<int32_t>(2 + random_below(3, static_cast<uint64_t>(i), 40));
    out.push_back({length + 1, length});
  }
  return out;
}

TEST(PlanEpoch, TakesEveryPairOnceWithinTheBudget) {
  std::vector<PairLength> lengths = some_lengths(5000);
  for (bool by_length : {true, false}) {
    BatchConfig config{.tokens = 300, .by_length = by_length};
    std::vector<int32_t> seen;
    for (const StepPlan& step : plan_epoch(lengths, config, 1, 0)) {
      int64_t tokens = 0;
      for (int32_t i : step) tokens += lengths[i].target;
      EXPECT_LE(tokens, 300);
      seen.insert(seen.end(), step.begin(), step.end());
    }
    std::sort(seen.begin(), seen.end());
    std::vector<int32_t> all(lengths.size());
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(seen, all);
  }
}

TEST(PlanEpoch, CountsSentencesWhenAskedTo) {
  std::vector<PairLength> lengths = some_lengths(1030);
  for (bool by_length : {true, false}) {
    BatchConfig config{.by_length = by_length, .pool_steps = 4, .sentences = 100};
    std::vector<std::size_t> sizes;
    std::vector<int32_t> seen;
    for (const StepPlan& step : plan_epoch(lengths, config, 1, 0)) {
      sizes.push_back(step.size());
      seen.insert(seen.end(), step.begin(), step.end());
    }
    std::sort(sizes.begin(), sizes.end());
    EXPECT_EQ(sizes,
              (std::vector<std::size_t>{30, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100}));
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(std::unique(seen.begin(), seen.end()) - seen.begin(), 1030);
  }
}

TEST(PlanEpoch, DependsOnSeedAndEpochAlone) {
  std::vector<PairLength> lengths = some_lengths(500);
  BatchConfig config{.tokens = 100};
  EXPECT_EQ(plan_epoch(lengths, config, 1, 2), plan_epoch(lengths, config, 1, 2));
  EXPECT_NE(plan_epoch(lengths, config, 1, 2), plan_epoch(lengths, config, 1, 3));
  EXPECT_NE(plan_epoch(lengths, config, 1, 2), plan_epoch(lengths, config, 2, 2));
}

TEST(PlanEpoch, KeepsSimilarLengthsTogether) {
  std::vector<PairLength> lengths = some_lengths(5000);
  auto spread = [&](bool by_length) {
    BatchConfig config{.tokens = 500, .by_length = by_length};
    double sum = 0;
    auto steps = plan_epoch(lengths, config, 1, 0);
    for (const StepPlan& step : steps) {
      auto [low, high] = std::minmax_element(step.begin(), step.end(), [&](int32_t a, int32_t b) {
        return lengths[a].target < lengths[b].target;
      });
      sum += lengths[*high].target - lengths[*low].target;
    }
    return sum / static_cast<double>(steps.size());
  };
  EXPECT_LT(spread(true), 0.2 * spread(false));
}

TEST(PlanEpoch, GivesAPairBeyondTheBudgetAStepOfItsOwn) {
  std::vector<PairLength> lengths = {{5, 5}, {50, 50}, {5, 5}};
  auto steps = plan_epoch(lengths, {.tokens = 10, .by_length = false}, 1, 0);
  std::size_t pairs = 0;
  for (const StepPlan& step : steps) pairs += step.size();
  EXPECT_EQ(pairs, 3u);
}

TEST(SplitStep, BalancesTokensAndLosesNothing) {
  std::vector<PairLength> lengths = some_lengths(100);
  StepPlan step(100);
  std::iota(step.begin(), step.end(), 0);
  auto parts = split_step(step, lengths, StepParts(equal_shares(3, 1)));
  std::vector<int64_t> load;
  std::size_t pairs = 0;
  for (const auto& part : parts) {
    int64_t sum = 0;
    for (int32_t i : part) sum += lengths[i].source + lengths[i].target;
    load.push_back(sum);
    pairs += part.size();
  }
  EXPECT_EQ(pairs, 100u);
  auto [low, high] = std::minmax_element(load.begin(), load.end());
  EXPECT_LT(static_cast<double>(*high - *low), 0.02 * static_cast<double>(*high));
}

TEST(SplitStep, FollowsTheWeights) {
  std::vector<PairLength> lengths = some_lengths(200);
  StepPlan step(200);
  std::iota(step.begin(), step.end(), 0);
  const RankShares shares = {{1714, 1}, {857, 2}, {429, 1}};
  const StepParts parts(shares);
  std::vector<double> load(3, 0);
  double all = 0;
  const auto split = split_step(step, lengths, parts);
  for (int64_t part = 0; part < parts.count(); ++part) {
    for (int32_t i : split[part]) {
      load[parts.rank_of(part)] += lengths[i].source + lengths[i].target;
      all += lengths[i].source + lengths[i].target;
    }
  }
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_NEAR(load[rank] / all, parts_of_one(shares)[rank], 0.01);
  }
}

TEST(SplitStep, LeavesPartsEmptyWhenThereAreFewerPairs) {
  std::vector<PairLength> lengths = {{3, 3}};
  auto parts = split_step({0}, lengths, StepParts(equal_shares(2, 1)));
  EXPECT_EQ(parts[0].size() + parts[1].size(), 1u);
}

TEST(Prefetcher, GivesItemsInOrderAndPassesOnFailures) {
  int made = 0;
  Prefetcher<int> items([&] {
    if (made == 3) throw std::runtime_error("no more");
    return made++;
  });
  EXPECT_EQ(items.next(), 0);
  EXPECT_EQ(items.next(), 1);
  EXPECT_EQ(items.next(), 2);
  EXPECT_THROW(items.next(), std::runtime_error);
}

// As with a device that the present step fills: there is room for what comes when it has ended.
TEST(Prefetcher, TriesOnceMoreWhatMayPassWhenNothingElseIsLeft) {
  std::atomic<int> room = 2, tries = 0;
  int made = 0;
  const auto make = [&] {
    ++tries;
    if (room == 0) throw std::length_error("no room");
    --room;
    return made++;
  };
  const auto may_pass = [](const std::exception& error) {
    return dynamic_cast<const std::length_error*>(&error) != nullptr;
  };
  Prefetcher<int> items(make, 4, may_pass);
  EXPECT_EQ(items.next(), 0);
  while (tries < 3) std::this_thread::yield();  // the third finds no room
  EXPECT_EQ(items.next(), 1);
  EXPECT_EQ(tries, 3);
  room = 1;
  EXPECT_EQ(items.next(), 2);
  EXPECT_THROW(items.next(), std::length_error);  // nothing is left, and there is no room
  EXPECT_EQ(made, 3);
}

TEST(Prefetcher, StopsWhenItsOwnerGoesThatNeverWaitsAgain) {
  std::atomic<int> tries = 0;
  Prefetcher<int> items([&]() -> int { throw std::length_error(std::to_string(++tries)); }, 4,
                        [](const std::exception&) { return true; });
  while (tries == 0) std::this_thread::yield();
}

TEST(Prefetcher, StopsWhenItsOwnerGoes) {
  Prefetcher<int> items([] { return 1; }, 2);
  EXPECT_EQ(items.next(), 1);
}

TEST(PlanEpoch, WhoseStepsGetAnotherSizeHasEachPairOnce) {
  const std::vector<PairLength> lengths = some_lengths(500);
  for (bool by_length : {true, false}) {
    const BatchConfig before{.tokens = 200, .by_length = by_length, .pool_steps = 4};
    const BatchConfig after = before.with({8, "sentences"});
    const std::vector<EpochStretch> done = {{7, {200, "tokens"}}};
    const auto old_steps = plan_epoch(lengths, before, 1, 2);
    const auto steps = plan_epoch(lengths, after, 1, 2, done);
    EXPECT_EQ(steps, plan_epoch(lengths, after, 1, 2, done));
    std::multiset<int32_t> seen;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (i < 7) {
        EXPECT_EQ(steps[i], old_steps[i]);
      } else {
        EXPECT_LE(steps[i].size(), 8u);
      }
      seen.insert(steps[i].begin(), steps[i].end());
    }
    EXPECT_EQ(seen.size(), 500u);
    EXPECT_EQ(std::set<int32_t>(seen.begin(), seen.end()).size(), 500u);
  }
}

}  // namespace
}  // namespace lockstep
