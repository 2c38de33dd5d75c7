// Groups that train by themselves and meet.
#include "train/parts/local_steps.h"

#include <gtest/gtest.h>

#include "support/ranks.h"

namespace lockstep {
namespace {

struct LocalNetwork {
  Parameters parameters;
  FrozenWeights frozen;
  LocalNetwork() {
    parameters.add("matrix", {20, 30}, ones());
    parameters.add("vector", {40}, ones());
    parameters.allocate(torch::kCPU, at::kFloat, 1);
  }
  void move(double by) { torch::Tensor(parameters.values()).add_(by); }
  double at(int64_t element) const { return parameters.values()[element].item<double>(); }
};

LocalStepsConfig config_of(const std::string& strategy, int64_t steps, int64_t overlap = 0) {
  LocalStepsConfig config;
  config.strategy = strategy;
  config.local_steps = steps;
  config.local_after = 0;
  config.overlap_steps = overlap;
  return config;
}

// A step of this rank with as many targets as its number plus one, of all ranks' together.
LocalStep step_of(const World& world, int64_t step) {
  const int64_t n = world.size();
  return {.step = step,
          .targets = world.rank() + 1,
          .all_targets = n * (n + 1) / 2,
          .loss = 2.0 * (world.rank() + 1)};
}

TEST(LocalSteps, TakeTheMeanOfTheWeightsByTargets) {
  expect_all_well(run_ranks(3, [](World& world) {
    LocalNetwork network;
    LocalSteps local({world, network.parameters, network.frozen, {}}, config_of("local_sgd", 2), {},
                     1000);
    EXPECT_EQ(local.reach(1), Reach::kAlone);
    local.begin(0);
    StopWish stop;
    network.move(world.rank());
    EXPECT_FALSE(local.after_step(step_of(world, 1), {}, stop));
    network.move(world.rank());
    EXPECT_TRUE(local.after_step(step_of(world, 2), {}, stop));
    // Moved by 0, 2 and 4 with weights 1/6, 2/6, 3/6.
    EXPECT_NEAR(network.at(0), 1 + 16.0 / 6, 1e-5);
    const auto weights = static_cast<uint64_t>(network.at(5) * 1e6);
    EXPECT_TRUE(world.all_equal(std::span(&weights, 1)).empty());
    ASSERT_TRUE(local.meeting());
    EXPECT_EQ(local.meeting()->steps, 2);
    EXPECT_NEAR(local.meeting()->loss, 2, 1e-12);
    EXPECT_FALSE(stop.interrupted);
  }));
}

// Douillard et al. 2023, algorithm 1, with the outer optimizer as torch.optim.SGD has it:
// m = mu m + g; value -= lr (g + mu m).
TEST(LocalSteps, TakeOuterStepsWithNesterovsMomentum) {
  expect_all_well(run_ranks(2, [](World& world) {
    LocalNetwork network;
    LocalStepsConfig config = config_of("diloco", 1);
    LocalSteps local({world, network.parameters, network.frozen, {}}, config, {}, 1000);
    local.begin(0);
    StopWish stop;
    double value = 1, momentum = 0;
    for (int step = 1; step <= 4; ++step) {
      network.move(0.3 * (world.rank() + 1));
      EXPECT_TRUE(local.after_step(step_of(world, step), {}, stop));
      const double way = -(0.3 * 1 + 0.6 * 2) / 3;
      momentum = 0.9 * momentum + way;
      value -= 0.7 * (way + 0.9 * momentum);
      EXPECT_NEAR(network.at(0), value, 1e-5);
    }
  }));
}

TEST(LocalSteps, MeetWhereARunEndsAndTellAllOfAWishToStop) {
  expect_all_well(run_ranks(2, [](World& world) {
    LocalNetwork network;
    LocalSteps local({world, network.parameters, network.frozen, {}}, config_of("local_sgd", 10),
                     {}, 1000);
    local.begin(0);
    LocalStep step = step_of(world, 1);
    step.stop.interrupted = world.rank() == 1;
    StopWish stop;
    EXPECT_FALSE(local.after_step(step, {}, stop));
    EXPECT_TRUE(local.after_step(step_of(world, 2), {.last = true}, stop));
    EXPECT_TRUE(stop.interrupted);
    EXPECT_FALSE(stop.out_of_time);
  }));
}

// What a group moved by while the sums were under way is kept on top of the new weights.
TEST(LocalSteps, OverlapAMeetingWithTheNextSteps) {
  expect_all_well(run_ranks(2, [](World& world) {
    LocalNetwork network;
    LocalSteps local({world, network.parameters, network.frozen, {}}, config_of("local_sgd", 4, 2),
                     {}, 1000);
    local.begin(0);
    StopWish stop;
    auto take = [&](int64_t step, bool due = false) {
      network.move(world.rank() + 1);
      return local.after_step(step_of(world, step), {.due = due}, stop);
    };
    for (int step = 1; step <= 5; ++step) EXPECT_FALSE(take(step));
    EXPECT_EQ(network.at(0), 1 + 5 * (world.rank() + 1));  // nothing has come yet
    EXPECT_FALSE(take(6));
    const double mean = 4 * (1.0 + 2 * 2) / 3;
    EXPECT_NEAR(network.at(0), 1 + mean + 2 * (world.rank() + 1), 1e-5);
    EXPECT_FALSE(take(7));
    EXPECT_TRUE(take(8, true));  // weights are wanted: it waits
    EXPECT_NEAR(network.at(0), 1 + 2 * mean, 1e-5);
  }));
}

TEST(LocalSteps, OfAMachineGoOnTogether) {
  RanksOptions options;
  options.machines = {"a", "a", "b", "b"};
  auto body = [](World& world) {
    LocalNetwork network;
    LocalStepsConfig config = config_of("local_sgd", 1);
    config.local_group = "machine";
    LocalSteps local({world, network.parameters, network.frozen, {}}, config, {"bf16"}, 1000);
    EXPECT_EQ(local.reach(1), Reach::kMachine);
    EXPECT_EQ(local.group_leader(), world.rank() / 2 * 2);
    local.begin(0);
    network.move(world.rank() / 2);  // alike on a machine
    StopWish stop;
    EXPECT_TRUE(local.after_step(step_of(world, 1), {}, stop));
    EXPECT_NEAR(network.at(0), 1 + 0.7, 0.01);  // bf16 has 8 bits
  };
  expect_all_well(run_ranks(4, body, options));
}

TEST(LocalSteps, EndTheRunWhenAGroupIsNotFinite) {
  auto results = run_ranks(2, [](World& world) {
    LocalNetwork network;
    LocalSteps local({world, network.parameters, network.frozen, {}}, config_of("diloco", 1), {},
                     1000);
    local.begin(0);
    if (world.rank() == 1) network.move(std::numeric_limits<double>::infinity());
    StopWish stop;
    local.after_step(step_of(world, 1), {}, stop);
  });
  for (const RankResult& r : results) EXPECT_EQ(r.exit_code, kExitDiverged) << r.text;
}

}  // namespace
}  // namespace lockstep
