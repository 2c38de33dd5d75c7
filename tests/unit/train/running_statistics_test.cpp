#include "train/parts/running_statistics.h"

#include <gtest/gtest.h>

#include "support/ranks.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_tensors.h"

namespace lockstep {
namespace {

struct NetworkWithStatistics {
  Parameters parameters;
  explicit NetworkWithStatistics(float filled = 0, uint64_t seed = 1) {
    parameters.add("weight", {3, 2}, normal(1));
    parameters.add_buffer("norm.running_mean", {5}, 0);
    parameters.add_buffer("norm.running_var", {5}, 1);
    parameters.allocate(torch::kCPU, torch::kFloat, seed);
    fill(filled);
  }
  void fill(float value) {
    for (const BufferRef& b : parameters.buffer_list()) b->value.fill_(value);
  }
  float value() const { return parameters.buffer_list().back()->value[4].item<float>(); }
};

TEST(RunningStatistics, AreTheMeanOfAllRanksAndStayEachRanksOwn) {
  expect_all_well(run_ranks(2, [](World& world) {
    NetworkWithStatistics network(world.rank() == 0 ? 1 : 4);
    RunningStatistics statistics(world, network.parameters, true);
    statistics.move_average(0.5);
    const auto means = statistics.means();
    EXPECT_EQ(means.now[0].item<float>(), 2.5f);
    EXPECT_EQ(means.average[0].item<float>(), 2.5f);
    EXPECT_EQ(network.value(), world.rank() == 0 ? 1.f : 4.f);
    const auto own = statistics.own();
    ASSERT_EQ(own.size(), 2u);
    network.fill(9);
    statistics.take(own);
    EXPECT_EQ(network.value(), world.rank() == 0 ? 1.f : 4.f);
  }));
}

TEST(RunningStatistics, AreNobodysOwnWhereAllAreAlike) {
  expect_all_well(run_ranks(2, [](World& world) {
    NetworkWithStatistics network(3);
    RunningStatistics statistics(world, network.parameters, false);
    EXPECT_TRUE(statistics.own().empty());
    EXPECT_TRUE(statistics.means().now.is_same(network.parameters.buffers()));
  }));
}

TEST(RunningStatistics, ALostStepLeavesNoTrace) {
  World world({}, {});
  NetworkWithStatistics network(3);
  RunningStatistics statistics(world, network.parameters, false);
  statistics.remember();
  network.fill(std::numeric_limits<float>::infinity());
  statistics.go_back();
  EXPECT_EQ(network.value(), 3);
}

TEST(RunningStatistics, AreInCheckpointsWithTheWeightsAndWithTheirAverage) {
  TemporaryFolder folder;
  NetworkWithStatistics saved(3, 7);
  const torch::Tensor average = saved.parameters.values() + 1;
  CheckpointContent content{.parameters = &saved.parameters, .average = average};
  content.average_buffers = saved.parameters.buffers() + 2;
  save_checkpoint(folder.path(), content);

  NetworkWithStatistics used(0, 1);
  load_weights_for_use(folder.path() / "step_0", used.parameters);
  EXPECT_EQ(used.value(), 5) << "those of the average";
  NetworkWithStatistics resumed(0, 1);
  CheckpointContent into{.parameters = &resumed.parameters};
  load_checkpoint(folder.path() / "step_0", into);
  EXPECT_EQ(resumed.value(), 3);
  EXPECT_TRUE(torch::equal(resumed.parameters.values(), saved.parameters.values()));
  NetworkWithStatistics begun(0, 1);
  const MatchedWeights matched =
      load_matching_weights(folder.path() / "step_0/weights.safetensors", begun.parameters);
  EXPECT_EQ(matched.copied.size(), 3u);
  EXPECT_TRUE(matched.unused.empty());
  EXPECT_EQ(begun.value(), 3);
}

}  // namespace
}  // namespace lockstep
