#include "train/checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support/expect_error.h"
#include "train/checkpoint/checkpoint_inspection.h"
#include "train/checkpoint/checkpoint_writer.h"
#include "train/folder/checkpoint_folder.h"

namespace lockstep {
namespace {

struct Network {
  Parameters parameters;
  torch::Tensor moment, average;
  explicit Network(uint64_t seed, int64_t width = 4) {
    parameters.add("weight", {3, width}, normal(1));
    parameters.add("bias", {width}, zeros());
    parameters.add_buffer("norm.running_mean", {5}, static_cast<float>(seed));
    parameters.allocate(torch::kCPU, torch::kFloat, seed);
    moment = parameters.values() * 2;
    average = parameters.values() * 3;
  }
  CheckpointContent content(int64_t step = 0) {
    return {.position = {.step = step, .epoch = 1, .step_in_epoch = 2, .targets_seen = 70},
            .parameters = &parameters,
            .average = average,
            .optimizer = {.arrays = {{"moment", moment}}, .steps_done = step},
            .guard = {{"loss_scale.scale", 512}}};
  }
};

class CheckpointTest : public ::testing::Test {
 protected:
  fs::path saved(Network& network, int64_t step = 7) {
    save_checkpoint(folder_.path(), network.content(step));
    return folder_.path() / fmt::format("step_{}", step);
  }
  TemporaryFolder folder_;
};

TEST_F(CheckpointTest, BringsBackEverythingBitByBit) {
  Network before(1), after(2);
  const fs::path checkpoint = saved(before);
  CheckpointContent content = after.content();
  content.guard.clear();
  const RunPosition position = load_checkpoint(checkpoint, content);
  EXPECT_EQ(position.step, 7);
  EXPECT_EQ(position.epoch, 1);
  EXPECT_EQ(position.targets_seen, 70);
  EXPECT_TRUE(torch::equal(after.parameters.values(), before.parameters.values()));
  EXPECT_TRUE(torch::equal(after.parameters.buffers(), before.parameters.buffers()));
  EXPECT_TRUE(torch::equal(after.moment, before.moment));
  EXPECT_TRUE(torch::equal(after.average, before.average));
  EXPECT_EQ(content.optimizer.steps_done, 7);
  EXPECT_EQ(content.guard.at("loss_scale.scale"), 512);
}

TEST_F(CheckpointTest, AnOwnCopySharesNothing) {
  Network network(1);
  const CheckpointContent content = network.content();
  const CheckpointContent copy = own_copy(content);
  EXPECT_TRUE(torch::equal(copy.weights, network.parameters.values()));
  EXPECT_TRUE(torch::equal(copy.buffers, network.parameters.buffers()));
  EXPECT_NE(copy.weights.data_ptr(), network.parameters.values().data_ptr());
  EXPECT_NE(copy.buffers.data_ptr(), network.parameters.buffers().data_ptr());
  EXPECT_NE(copy.average.data_ptr(), network.average.data_ptr());
  EXPECT_NE(copy.optimizer.arrays[0].data.data_ptr(), network.moment.data_ptr());
  EXPECT_FALSE(copy.average_buffers.defined());
}

// The error comes where the checkpoint is asked for, and nothing half written stays.
TEST_F(CheckpointTest, AWriterThrowsWhatTheDiskRefused) {
  Network network(1);
  write_file(folder_.path() / "file", "");
  CheckpointWriter writer;
  writer.start(folder_.path() / "file", own_copy(network.content()));
  EXPECT_ERROR(writer.wait(), MachineError, "step_0: cannot be saved");
  EXPECT_FALSE(writer.wait());
}

TEST_F(CheckpointTest, AWriterEndsWhatItBegan) {
  Network network(1);
  { CheckpointWriter().start(folder_.path(), own_copy(network.content(4))); }
  EXPECT_EQ(checkpoint_damage(folder_.path() / "step_4"), "");
}

TEST_F(CheckpointTest, TheAverageIsWhatIsUsed) {
  Network before(1), after(2);
  load_weights_for_use(saved(before), after.parameters);
  EXPECT_TRUE(torch::equal(after.parameters.values(), before.average));
}

TEST_F(CheckpointTest, OfAnotherNetworkNamesTheWeightAndBothShapes) {
  Network narrow(1, 4), wide(1, 6);
  const fs::path checkpoint = saved(narrow);
  CheckpointContent content = wide.content();
  EXPECT_ERROR(load_checkpoint(checkpoint, content), DataError, "weight");
  EXPECT_ERROR(load_checkpoint(checkpoint, content), DataError, "[3, 6]");
  EXPECT_ERROR(load_checkpoint(checkpoint, content), DataError, "[3, 4]");
}

TEST_F(CheckpointTest, OfWeightsAloneIsNotOneToGoOnFrom) {
  Network network(1);
  const float bytes[3] = {1, 2, 3};
  save_weights(folder_.path(), 4, {{"weight", DType::kF32, {3}, std::as_bytes(std::span(bytes))}});
  CheckpointContent content = network.content();
  EXPECT_THROW(load_checkpoint(folder_.path() / "step_4", content), DataError);
}

TEST_F(CheckpointTest, ADamagedStateIsToldWithItsFile) {
  Network network(1);
  const fs::path checkpoint = saved(network);
  write_file(state_file(checkpoint), "{\"step\": ");
  CheckpointContent content = network.content();
  EXPECT_ERROR(load_checkpoint(checkpoint, content), DataError, "step_7/state.json");
}

TEST_F(CheckpointTest, ReplacesAnIncompleteOneAndLeavesOthers) {
  Network network(1);
  saved(network, 5);
  const fs::path checkpoint = folder_.path() / "step_7";
  fs::create_directories(checkpoint);
  write_file(checkpoint / "weights.safetensors", "half");
  saved(network, 7);
  EXPECT_EQ(newest_complete_checkpoint(folder_.path()), checkpoint);
  Network other(2);
  CheckpointContent content = other.content();
  EXPECT_EQ(load_checkpoint(checkpoint, content).step, 7);
  EXPECT_TRUE(fs::exists(folder_.path() / "step_5" / "DONE"));
}

TEST_F(CheckpointTest, InAFolderThatCannotBeReadAreNotTakenForNone) {
  EXPECT_TRUE(all_checkpoints(folder_.path() / "absent").empty());
  const fs::path file = folder_.path() / "checkpoints";
  write_file(file, "");
  EXPECT_ERROR(newest_complete_checkpoint(file), MachineError, "checkpoints: cannot be read");
}

// Another program looks at a run that trains: `lockstep checkpoint list`, a host that joins.
TEST_F(CheckpointTest, AreLookedAtWhileOthersAreRemoved) {
  Network network(1);
  std::atomic<bool> done = false;
  std::thread run([&] {
    for (int64_t step = 1; step <= 200; ++step) {
      saved(network, step);
      remove_old_checkpoints(folder_.path(), 1, {});
    }
    done = true;
  });
  while (!done) {
    EXPECT_NO_THROW(list_checkpoints(folder_.path(), CheckpointCheck::kHashes));
    EXPECT_NO_THROW(newest_complete_checkpoint(folder_.path()));
  }
  run.join();
  const auto listed = list_checkpoints(folder_.path(), CheckpointCheck::kHashes);
  ASSERT_EQ(listed.size(), 1);
  EXPECT_EQ(listed[0].damage, "");
}

}  // namespace
}  // namespace lockstep
