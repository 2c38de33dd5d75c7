#include "train/parts/weight_update.h"

#include <gtest/gtest.h>

#include "optim/optimizers/adam.h"
#include "optim/optimizers/catalogue.h"
#include "support/expect_error.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

// Two weights and a bias of lengths that no number of ranks divides.
struct Network {
  Parameters parameters;
  Network() {
    parameters.add("first.weight", {7, 5}, normal(1));
    parameters.add("first.bias", {5}, zeros());
    parameters.add("second.weight", {11, 3}, normal(1));
    parameters.allocate(torch::kCPU, torch::kFloat, 3);
  }
  void set_gradients(float by) {
    torch::NoGradGuard no_grad;
    for (const ParameterRef& p : parameters.list()) {
      p->value.mutable_grad().copy_(torch::arange(p->numel, torch::kFloat).view(p->shape) * by);
    }
  }
};

std::unique_ptr<OptimizerConfig> adam() { return make_adam_config(); }

void take_steps(Network& network, WeightUpdate& update, int steps) {
  for (int i = 1; i <= steps; ++i) {
    network.set_gradients(0.01F * static_cast<float>(i));
    update.step({.lr = 0.01, .average_decay = 0.5});
  }
}

TEST(WeightUpdate, LeavesGradientsZeroAndMovesTheAverage) {
  World world({}, {});
  Network network;
  const auto config = adam();
  WeightUpdate update(world, network.parameters, *config, {.average = true});
  const torch::Tensor before = network.parameters.values().clone();
  take_steps(network, update, 1);
  EXPECT_EQ(network.parameters.gradients().abs().max().item<float>(), 0);
  EXPECT_FALSE(torch::equal(network.parameters.values(), before));
  EXPECT_TRUE(torch::allclose(update.average(), (before + network.parameters.values()) / 2));
}

TEST(WeightUpdate, TellsWhatItTakesBeforeItTakesIt) {
  Network network;
  const auto one = static_cast<int64_t>(network.parameters.values().nbytes());
  for (const auto& item : optimizers().items()) {
    const auto config = item.entry();
    World world({}, {});
    WeightUpdate update(world, network.parameters, *config, {.average = true});
    int64_t held = 3 * one;  // weights, gradients, average
    for (const StateArray& array : update.gather_state().arrays) {
      if (!array.per_layer) held += static_cast<int64_t>(array.data.nbytes());
    }
    EXPECT_EQ(bytes_of_update(network.parameters, *config, true, 1), held) << item.name;
    EXPECT_EQ(bytes_of_update(network.parameters, *config, false, 1), held - one) << item.name;
    EXPECT_LE(bytes_of_update(network.parameters, *config, true, 2), held) << item.name;
  }
  const auto config = adam();
  EXPECT_EQ(bytes_of_update(network.parameters, *config, false, 1), 4 * one);
  EXPECT_EQ(bytes_of_update(network.parameters, *config, false, 2), 3 * one);
}

// ZeRO's first stage is a matter of memory: the weights have the same bits.
TEST(WeightUpdate, ShardedOverRanksGivesTheSameBits) {
  World alone({}, {});
  Network one;
  const auto config = adam();
  WeightUpdate whole(alone, one.parameters, *config, {.average = true});
  take_steps(one, whole, 4);
  const OptimizerState expected = whole.gather_state();
  expect_all_well(run_ranks(3, [&](World& world) {
    Network network;
    WeightUpdate update(world, network.parameters, *config, {.average = true, .sharded = true});
    take_steps(network, update, 4);
    EXPECT_TRUE(torch::equal(network.parameters.values(), one.parameters.values()));
    update.gather_average();
    EXPECT_TRUE(torch::equal(update.average(), whole.average()));
    const OptimizerState state = update.gather_state();
    EXPECT_EQ(state.steps_done, 4);
    ASSERT_EQ(state.arrays.size(), expected.arrays.size());
    for (std::size_t i = 0; i < state.arrays.size(); ++i) {
      EXPECT_EQ(state.arrays[i].name, expected.arrays[i].name);
      EXPECT_TRUE(torch::equal(state.arrays[i].data, expected.arrays[i].data)) << i;
    }
  }));
}

TEST(WeightUpdate, GoesOnFromAStateOfAnyNumberOfRanks) {
  World alone({}, {});
  const auto config = adam();
  Network one;
  WeightUpdate whole(alone, one.parameters, *config, {});
  take_steps(one, whole, 2);
  const torch::Tensor values = one.parameters.values().clone();
  OptimizerState saved{.steps_done = 2};
  for (const StateArray& a : whole.gather_state().arrays) {
    saved.arrays.push_back({a.name, a.data.clone(), a.per_layer});
  }
  take_steps(one, whole, 1);
  expect_all_well(run_ranks(2, [&](World& world) {
    Network network;
    WeightUpdate update(world, network.parameters, *config, {.sharded = true});
    {
      torch::NoGradGuard no_grad;
      network.parameters.values().copy_(values);
    }
    update.set_state(saved);
    take_steps(network, update, 1);
    EXPECT_TRUE(torch::equal(network.parameters.values(), one.parameters.values()));
  }));
}

TEST(WeightUpdate, DecayLeavesAloneWhatItIsToldTo) {
  World world({}, {});
  AdamConfig config(AdamKind::kAdamW);
  config.weight_decay = 0.1;
  for (const bool vectors : {true, false}) {
    Network network;
    const Parameter& weight = *network.parameters.find("second.weight");
    const Parameter& bias = *network.parameters.find("first.bias");
    {
      torch::NoGradGuard no_grad;
      bias.value.fill_(1);
    }
    const torch::Tensor before = weight.value.clone();
    WeightUpdate update(world, network.parameters, config,
                        {.decay_vectors = vectors, .no_decay = {"second.*"}});
    update.step({.lr = 0.1});  // without gradients only the decay moves weights
    EXPECT_TRUE(torch::equal(weight.value, before));
    EXPECT_EQ(bias.value[0].item<float>() < 1, vectors);
  }
}

TEST(WeightUpdate, AnExpressionThatMatchesNothingIsAnError) {
  World world({}, {});
  Network network;
  const auto config = adam();
  EXPECT_THROW(WeightUpdate(world, network.parameters, *config, {.no_decay = {"third.*"}}),
               ConfigError);
}

}  // namespace
}  // namespace lockstep
