#include "train/checkpoint/checkpoint_sharing.h"

#include <gtest/gtest.h>

#include "support/ranks.h"
#include "train/parts/agreement.h"

namespace lockstep {
namespace {

// A network of two weights with the state of an optimizer that has one array.
struct SharedNetwork {
  Parameters parameters;
  torch::Tensor moment;
  SharedNetwork(uint64_t seed, float filled) {
    parameters.add("first", {3, 5}, normal(1));
    parameters.add("second", {7}, normal(1));
    parameters.allocate(torch::kCPU, torch::kFloat, seed);
    moment = torch::full_like(parameters.values(), filled);
  }
  CheckpointContent content() {
    CheckpointContent out{.parameters = &parameters};
    out.average = moment + 1;
    out.optimizer = {.arrays = {{"moment", moment}}, .steps_done = 0};
    return out;
  }
};

// Whether every weight's element of a flat array has this value; what lies between the weights is
// not kept.
bool holds(const torch::Tensor& flat, float value, const Parameters& parameters) {
  for (const ParameterRef& p : parameters.list()) {
    if (!flat.narrow(0, p->offset, p->numel).eq(value).all().item<bool>()) return false;
  }
  return true;
}

void save(const RunFolder& folder, int64_t step, uint64_t seed) {
  SharedNetwork network(seed, static_cast<float>(seed));
  CheckpointContent content = network.content();
  content.position.step = step;
  content.optimizer.steps_done = step;
  save_checkpoint(folder.checkpoints(), content);
}

// Runs on two ranks that are the first of their machines.
std::vector<RankResult> on_two_machines(const std::function<void(World&)>& body) {
  return run_processes(2, [&](LaunchEnvironment environment) {
    environment.local_rank = 0;
    environment.local_size = 1;
    environment.host = environment.rank == 0 ? "a" : "b";
    environment.address = "127.0.0.1";
    World world(environment, {std::chrono::seconds{10}, std::chrono::seconds{10}, "cpu"});
    body(world);
  });
}

TEST(CheckpointSharing, OneMachineKeepsWhatAllSee) {
  TemporaryFolder shared;
  expect_all_well(on_two_machines([&](World& world) {
    EXPECT_EQ(keeps_checkpoints(world, RunFolder(shared.path()), true), world.is_leader());
  }));
  EXPECT_TRUE(fs::is_empty(shared.path())) << "the file that tells is gone again";
}

TEST(CheckpointSharing, EveryMachineKeepsItsOwnWhereNothingIsShared) {
  TemporaryFolder folders[2];
  expect_all_well(on_two_machines([&](World& world) {
    RunFolder folder(folders[world.rank()].path());
    EXPECT_TRUE(keeps_checkpoints(world, folder, true));
    EXPECT_EQ(keeps_checkpoints(world, folder, false), world.is_leader());
  }));
}

TEST(CheckpointSharing, TheHolderOfTheNewestBringsItToAll) {
  TemporaryFolder folders[2];
  save(RunFolder(folders[0].path()), 5, 5);
  save(RunFolder(folders[1].path()), 8, 8);
  expect_all_well(on_two_machines([&](World& world) {
    RunFolder folder(folders[world.rank()].path());
    auto newest = newest_of_all_ranks(world, folder, true);
    ASSERT_TRUE(newest.has_value());
    EXPECT_EQ(newest->step, 8);
    EXPECT_EQ(newest->holder, 1);
    SharedNetwork network(1, 0), expected(8, 8);
    CheckpointContent content = network.content();
    RunPosition position = load_from_holder(world, *newest, content);
    EXPECT_EQ(position.step, 8);
    EXPECT_EQ(content.optimizer.steps_done, 8);
    EXPECT_TRUE(torch::equal(network.parameters.values(), expected.parameters.values()));
    EXPECT_TRUE(holds(content.average, 9, network.parameters));
    EXPECT_TRUE(holds(network.moment, 8, network.parameters));
  }));
}

TEST(CheckpointSharing, AFailureToReadIsEverybodysAtOnce) {
  TemporaryFolder folders[2];
  save(RunFolder(folders[1].path()), 8, 8);
  auto results = on_two_machines([&](World& world) {
    auto newest = newest_of_all_ranks(world, RunFolder(folders[world.rank()].path()), true);
    world.barrier();
    if (world.rank() == 1) fs::remove(fs::path(newest->path) / "state.json");
    SharedNetwork network(1, 0);
    CheckpointContent content = network.content();
    load_from_holder(world, *newest, content);
  });
  for (const RankResult& r : results) EXPECT_EQ(r.exit_code, kExitData) << r.text;
  EXPECT_NE(results[0].text.find("rank 1 on b: "), std::string::npos) << results[0].text;
}

TEST(CheckpointSharing, PassesOverWhatAKillLeftHalfWritten) {
  TemporaryFolder folder;
  RunFolder run(folder.path());
  save(run, 5, 5);
  save(run, 9, 9);
  fs::remove(run.checkpoints() / "step_9" / "DONE");
  fs::create_directories(run.checkpoints() / "step_12.part");
  auto newest = newest_complete_checkpoint(run.checkpoints());
  ASSERT_TRUE(newest.has_value());
  EXPECT_EQ(newest->filename(), "step_5");
  EXPECT_FALSE(newest_complete_checkpoint(folder.path() / "none").has_value());
}

TEST(Agreement, NamesHostAndLineThatDiffer) {
  auto results = on_two_machines([](World& world) {
    std::string text = fmt::format("a = 1\nb = {}\nc = 3\n", world.rank() + 2);
    check_same_text(world, "the configuration", text);
  });
  for (const RankResult& r : results) {
    EXPECT_EQ(r.exit_code, kExitConfig) << r.text;
    EXPECT_NE(r.text.find("the configuration of rank 1 on b is not that of rank 0 on a"),
              std::string::npos)
        << r.text;
    EXPECT_NE(r.text.find("rank 1 on b has: b = 3; rank 0 on a has: b = 2"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep
