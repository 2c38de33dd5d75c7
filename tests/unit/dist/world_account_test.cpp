// What the operations of a World leave in the accounts of its ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "dist/account/progress.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

struct Moved {
  int64_t sent, received;
};

// What one operation moves on this rank.
template <typename Operation>
Moved moved_by(World& world, const Operation& operation) {
  const MovedBytes& bytes = world.progress().account().moved();
  const Moved before{bytes.sent(), bytes.received()};
  operation();
  return {bytes.sent() - before.sent, bytes.received() - before.received};
}

RanksOptions over_network() {
  RanksOptions options;
  options.world.shared_memory = false;
  return options;
}

// Whole cache lines for every member.
constexpr int64_t kNumel = 3 * 16 * 100000, kBytes = 4 * kNumel;

TEST(AccountOfSums, TwoRanksHandEachOtherTheWholeArray) {
  for (const RanksOptions& options : {RanksOptions{}, over_network()}) {
    expect_all_well(run_ranks(
        2,
        [](World& world) {
          torch::Tensor data = torch::ones({kNumel});
          const Moved moved = moved_by(world, [&] { world.all_reduce_sum(data); });
          EXPECT_EQ(moved.sent, kBytes);  // = 2 (n - 1) / n times
          EXPECT_EQ(moved.received, kBytes);
        },
        options));
  }
}

TEST(AccountOfSums, ThreeRanksMoveFourThirds) {
  for (const RanksOptions& options : {RanksOptions{}, over_network()}) {
    expect_all_well(run_ranks(
        3,
        [](World& world) {
          torch::Tensor data = torch::ones({kNumel});
          const Moved moved = moved_by(world, [&] { world.all_reduce_sum(data); });
          const double expected = 2.0 * 2 / 3 * kBytes;
          // Slices are of whole cache lines, in shared memory of each half megabyte.
          EXPECT_NEAR(static_cast<double>(moved.sent), expected, 0.001 * expected);
          EXPECT_NEAR(static_cast<double>(moved.received), expected, 0.001 * expected);
        },
        options));
  }
}

// Small sums go whole to everyone.
TEST(AccountOfSums, FiguresGoToEveryRank) {
  expect_all_well(run_ranks(
      3,
      [](World& world) {
        std::vector<double> figures(10, 1.0);
        const Moved moved = moved_by(world, [&] { world.all_reduce_sum(std::span(figures)); });
        EXPECT_EQ(moved.sent, 2 * 80);
        EXPECT_EQ(moved.received, 2 * 80);
      },
      over_network()));
  expect_all_well(run_ranks(3, [](World& world) {
    std::vector<double> figures(10, 1.0);
    const Moved moved = moved_by(world, [&] { world.all_reduce_sum(std::span(figures)); });
    EXPECT_EQ(moved.sent, 80) << "into the one slot that all read";
    EXPECT_EQ(moved.received, 2 * 80);
  }));
}

// Gloo's binomial tree: what all send together is what all but the root receive.
TEST(AccountOfSums, BroadcastsOverTheNetworkAddUp) {
  expect_all_well(run_ranks(
      3,
      [](World& world) {
        torch::Tensor data = torch::ones({1000});
        for (int root : {0, 2}) {
          const Moved moved = moved_by(world, [&] { world.broadcast(data, root); });
          EXPECT_EQ(moved.received, world.rank() == root ? 0 : 4000);
          std::vector<double> all{static_cast<double>(moved.sent)};
          world.all_reduce_sum(std::span(all));
          EXPECT_EQ(all[0], 2 * 4000);
        }
      },
      over_network()));
}

std::vector<std::string> names_of_exchanges(World& world) {
  const RecordedSpans recorded = world.progress().account().recorder().take(1);
  std::vector<std::string> out;
  for (const Span& span : recorded.spans) {
    if (span.row == SpanRow::kExchange) {
      out.push_back(recorded.names.at(static_cast<std::size_t>(span.name)));
      EXPECT_GE(span.length, 0);
      EXPECT_GT(span.bytes, 0);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// On every path: shared memory, network, two machines of which one has two ranks.
TEST(AccountOfExchanges, KnowsThemByNameAndWhatTheBackwardPassHides) {
  std::vector<RanksOptions> paths{RanksOptions{}, over_network(), RanksOptions{}};
  paths.back().machines = {"a", "a", "b"};
  for (const RanksOptions& options : paths) {
    expect_all_well(run_ranks(
        3,
        [](World& world) {
          RankProgress& progress = world.progress();
          StepAccount& account = progress.account();
          account.recorder().plan(1, 1);
          progress.begin_step(1, 0);
          progress.enter(Phase::kBackward);
          torch::Tensor data = torch::ones({kNumel});
          Completion gradients =
              world.start_all_reduce_sum(data, "all-reduce of gradient bucket 0");
          std::this_thread::sleep_for(std::chrono::milliseconds{150});
          progress.enter(Phase::kWait);
          std::vector<double> figures(4, 1.0);
          Completion summed = world.start_all_reduce_sum(std::span(figures), "figures of a step");
          gradients();
          summed();
          progress.enter(Phase::kOther);
          const RankTimes times = account.so_far();
          EXPECT_GT(times.hidden, 0);
          EXPECT_LT(times.hidden, times.backward) << "the sum was over before the pass";
          EXPECT_EQ(names_of_exchanges(world),
                    (std::vector<std::string>{"figures of a step", "gradient bucket 0"}));
        },
        options));
  }
}

TEST(AccountOfExchanges, WhatAPassWaitsForIsNotHidden) {
  for (const RanksOptions& options : {RanksOptions{}, over_network()}) {
    expect_all_well(run_ranks(
        2,
        [](World& world) {
          RankProgress& progress = world.progress();
          progress.begin_step(1, 0);
          progress.enter(Phase::kForward);
          if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds{60});
          std::vector<double> moments(64, 1.0);
          world.all_reduce_sum(std::span(moments));
          progress.enter(Phase::kOther);
          const RankTimes times = progress.account().so_far();
          EXPECT_GT(times.forward, 0.04);
          EXPECT_LT(times.hidden, 0.01);
        },
        options));
  }
}

}  // namespace
}  // namespace lockstep
