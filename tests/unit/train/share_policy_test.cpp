#include "train/parts/share_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace lockstep {
namespace {

// Ranks that compute a whole step in so many seconds, and do other things besides.
struct Machines {
  std::vector<double> whole, fixed;

  std::vector<RankTimes> step(const std::vector<double>& parts) const {
    std::vector<RankTimes> out;
    for (std::size_t rank = 0; rank < whole.size(); ++rank) {
      const double work = whole[rank] * parts[rank];
      out.push_back({.data = static_cast<float>(fixed[rank] / 2),
                     .forward = static_cast<float>(work / 3),
                     .backward = static_cast<float>(work * 2 / 3),
                     .wait = 1,
                     .optimizer = static_cast<float>(fixed[rank] / 2)});
    }
    return out;
  }
  double seconds(const std::vector<double>& parts) const {
    double out = 0;
    for (std::size_t rank = 0; rank < whole.size(); ++rank) {
      out = std::max(out, fixed[rank] + whole[rank] * parts[rank]);
    }
    return out;
  }
};

struct Course {
  std::vector<double> parts;
  std::vector<int64_t> decided;  // after which steps
};

// Takes steps; `machines` of each step, counted from 0.
Course take(SharePolicy& policy, std::vector<double> parts, int64_t steps,
            const std::function<Machines(int64_t step)>& machines,
            const std::vector<double>& least = {0, 0, 0}) {
  Course out{.parts = std::move(parts)};
  for (int64_t step = 0; step < steps; ++step) {
    if (auto due = policy.after_step(out.parts, least, machines(step).step(out.parts))) {
      out.parts = due->parts;
      out.decided.push_back(step);
    }
  }
  return out;
}

const std::vector<double> kThird = {1 / 3.0, 1 / 3.0, 1 / 3.0};

TEST(SharePolicy, OfOneHalfAndAQuarterCoreAllEndTogether) {
  const Machines machines{{1, 2, 4}, {0, 0, 0}};
  SharePolicy policy({});
  const Course course = take(policy, kThird, 100, [&](int64_t) { return machines; });
  const double ideal = 1 / (1 + 1 / 2.0 + 1 / 4.0);
  EXPECT_NEAR(machines.seconds(course.parts), ideal, 0.001 * ideal);
  EXPECT_GT(machines.seconds(kThird), 2.3 * ideal);
  EXPECT_EQ(course.decided, std::vector<int64_t>{10}) << "after the warm-up and eight steps";
}

TEST(SharePolicy, WhatDoesNotGrowWithTheShareIsCountedApart) {
  const Machines machines{{1, 2, 4}, {0.05, 0.1, 0.2}};
  SharePolicy policy({});
  const Course course = take(policy, kThird, 100, [&](int64_t) { return machines; });
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_NEAR(machines.fixed[rank] + machines.whole[rank] * course.parts[rank],
                machines.seconds(course.parts), 1e-4);
  }
  EXPECT_NEAR(std::accumulate(course.parts.begin(), course.parts.end(), 0.0), 1, 1e-9);
}

TEST(SharePolicy, LeavesEqualMachinesAlone) {
  SharePolicy policy({});
  const Course course = take(policy, kThird, 300, [](int64_t step) {
    const double noise = 0.04 * std::sin(static_cast<double>(step));
    return Machines{{1 + noise, 1.02, 1 - noise}, {0.01, 0.01, 0.01}};
  });
  EXPECT_TRUE(course.decided.empty());
}

TEST(SharePolicy, FollowsWhatLastsAndNotWhatPasses) {
  SharePolicy policy({});
  const Course start = take(policy, kThird, 60, [](int64_t) {
    return Machines{{1, 1, 1}, {0, 0, 0}};
  });
  EXPECT_TRUE(start.decided.empty());
  // A few slow steps now and then, however slow.
  const Course passing = take(policy, kThird, 300, [](int64_t step) {
    return Machines{{1, step % 30 < 8 ? 5.0 : 1.0, 1}, {0, 0, 0}};
  });
  EXPECT_TRUE(passing.decided.empty());
  // A machine that got slower: after at most two windows, and once.
  const Course lasting = take(policy, kThird, 300, [](int64_t) {
    return Machines{{1, 2, 1}, {0, 0, 0}};
  });
  ASSERT_EQ(lasting.decided.size(), 1u);
  EXPECT_LE(lasting.decided[0], 60);
  EXPECT_NEAR(lasting.parts[1], 0.2, 0.001);
  // And well again.
  const Course well = take(policy, lasting.parts, 300, [](int64_t) {
    return Machines{{1, 1, 1}, {0, 0, 0}};
  });
  ASSERT_EQ(well.decided.size(), 1u);
  EXPECT_NEAR(well.parts[1], 1 / 3.0, 0.001);
}

// Steps of seven whole items can not follow the shares: what was not reached is not tried for ever.
TEST(SharePolicy, DoesNotAskAgainForWhatItDidNotGet) {
  SharePolicy policy({});
  std::vector<double> parts = kThird;
  int decided = 0;
  for (int64_t step = 0; step < 2000; ++step) {
    std::vector<double> items;
    for (double part : parts) items.push_back(std::max(1.0, std::floor(part * 7)) / 7);
    const std::vector<RankTimes> times = Machines{{1, 1.9, 3.1}, {0, 0, 0}}.step(items);
    if (auto due = policy.after_step(parts, std::vector<double>(3, 1 / 7.0), times)) {
      parts = due->parts;
      ++decided;
    }
  }
  EXPECT_LE(decided, 4);
}

TEST(SharePolicy, LeavesEveryRankTheLeast) {
  const Machines machines{{1, 1, 50}, {0, 0, 0.4}};
  SharePolicy policy({});
  const std::vector<double> least = {0.05, 0.05, 0.05};
  const Course course = take(
      policy, kThird, 50, [&](int64_t) { return machines; }, least);
  EXPECT_DOUBLE_EQ(course.parts[2], 0.05);
  EXPECT_NEAR(course.parts[0], 0.475, 1e-6);
}

TEST(SharePolicy, StepsWithoutTimesSayNothing) {
  SharePolicy policy({});
  for (int step = 0; step < 50; ++step) {
    EXPECT_FALSE(policy.after_step({0.5, 0.5}, std::vector<double>{0, 0},
                                   std::vector<RankTimes>{{.forward = 1}, {}}));
    EXPECT_FALSE(policy.after_step({0.5, 0.5}, std::vector<double>{0, 0}, {}));
  }
}

}  // namespace
}  // namespace lockstep
