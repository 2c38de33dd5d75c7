#include "train/loop/train_step.h"
#include "train/checkpoint/checkpoint_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/expect_error.h"
#include "support/line_task.h"
#include "support/ranks.h"
#include "tasks/catalogue.h"
#include "train/checkpoint/rank_state.h"

namespace lockstep {
namespace {

// A run of the line task, without a folder: what Trainer builds around a step.
class LineRun {
 public:
  explicit LineRun(World& world, const std::vector<std::string>& settings = {})
      : config_(configure(settings)), task_(static_cast<LineTask&>(*config_.task)) {
    task_.open({.world = &world, .seed = 1});
    state_ = std::make_unique<TrainingState>(config_, task_, world, Numerics{});
    state_->total_steps = 100;
    shares_ = std::make_unique<ShareTimeline>(equal_shares(world.size(), task_.accumulate()));
    maker_ = std::make_unique<StepMaker>(task_, world, RunPosition{}, *shares_);
  }

  StepOutcome step(const StopWish& wish = {}) {
    return train_step(*state_, {.next_batch = [this] { return maker_->next(); },
                                .wish = [wish] { return wish; }});
  }
  // As step(), with what `change` makes of the batch.
  StepOutcome changed_step(const std::function<void(PointsBatch&)>& change) {
    return train_step(*state_, {.next_batch = [&] {
      StepBatch batch = maker_->next();
      for (auto& micro : batch.micro_batches) change(static_cast<PointsBatch&>(*micro));
      return batch;
    }});
  }
  void skip_to(const RunPosition& position) {
    maker_ = std::make_unique<StepMaker>(task_, state_->world, position, *shares_);
  }

  // Divides the steps otherwise from here on.
  void divide(RankShares shares) {
    const RunPosition& now = state_->position;
    shares_->add({.from = {now.epoch, now.step_in_epoch}, .shares = std::move(shares)});
    skip_to(now);
  }

  float weight(const char* name) { return task_.parameters().find(name)->value.item<float>(); }
  TrainingState& state() { return *state_; }
  LineTask& task() { return task_; }

 private:
  static RunConfig configure(const std::vector<std::string>& settings) {
    static const bool is_there = [] {
      add_task(
          "line", []() -> std::unique_ptr<Task> { return std::make_unique<LineTask>(); }, "");
      return true;
    }();
    static_cast<void>(is_there);
    ConfigSource source = ConfigSource::from_text(
        "task.name = \"line\"\noptimizer = {name = \"sgd\", lr = 0.1, momentum = 0.0}\n"
        "schedule.name = \"fixed\"\ntraining.clip_norm = 0.0\nrun.precision = \"fp32\"\n",
        "test");
    for (const std::string& word : settings) source.override_with(word);
    return read_run_config(std::move(source));
  }

  RunConfig config_;
  LineTask& task_;
  std::unique_ptr<TrainingState> state_;
  std::unique_ptr<ShareTimeline> shares_;
  std::unique_ptr<StepMaker> maker_;
};

// Gradients of the mean squared error of a batch at slope and offset 0: -2 mean(x y), -2 mean(y).
struct ByHand {
  double slope = 0, offset = 0, loss = 0;
  explicit ByHand(const PointsBatch& batch) {
    const torch::Tensor x = batch.x.to(torch::kDouble), y = batch.y.to(torch::kDouble);
    slope = -2 * (x * y).mean().item<double>();
    offset = -2 * y.mean().item<double>();
    loss = y.square().mean().item<double>();
  }
  double norm() const { return std::hypot(slope, offset); }
};

ByHand first_step_by_hand() {
  LineTask task;
  const std::unique_ptr<Batch> batch = task.make_batch({});
  return ByHand(static_cast<const PointsBatch&>(*batch));
}

TEST(TrainStep, MovesTheWeightsByTheMeanGradient) {
  World world({}, {});
  LineRun run(world);
  const ByHand hand = first_step_by_hand();
  const StepOutcome outcome = run.step();
  EXPECT_TRUE(outcome.updated);
  EXPECT_NEAR(run.weight("slope"), -0.1 * hand.slope, 1e-6);
  EXPECT_NEAR(run.weight("offset"), -0.1 * hand.offset, 1e-6);
  EXPECT_NEAR(outcome.record.loss, hand.loss, 1e-5);
  EXPECT_NEAR(outcome.record.gradient_norm, hand.norm(), 1e-5);
  EXPECT_DOUBLE_EQ(outcome.record.lr, 0.1);
  EXPECT_EQ(outcome.record.items, 8);
  EXPECT_EQ(outcome.record.targets, 8);
}

TEST(TrainStep, CountsWhereTheRunStands) {
  World world({}, {});
  LineRun run(world);
  for (int i = 0; i < 9; ++i) run.step();  // 8 steps an epoch
  const RunPosition& position = run.state().position;
  EXPECT_EQ(position.step, 9);
  EXPECT_EQ(position.epoch, 1);
  EXPECT_EQ(position.step_in_epoch, 1);
  EXPECT_EQ(position.targets_seen, 72);
  EXPECT_FALSE(run.state().epoch_done);
}

TEST(TrainStep, ClipsTheGradientToItsNorm) {
  World world({}, {});
  const ByHand hand = first_step_by_hand();
  ASSERT_GT(hand.norm(), 0.5);
  LineRun run(world, {"training.clip_norm=0.5"});
  const StepOutcome outcome = run.step();
  EXPECT_NEAR(outcome.record.gradient_norm, hand.norm(), 1e-5) << "as it was before clipping";
  EXPECT_NEAR(std::hypot(run.weight("slope"), run.weight("offset")), 0.1 * 0.5, 1e-6);
}

TEST(TrainStep, FrozenWeightsStay) {
  World world({}, {});
  LineRun run(world, {"training.freeze=[\"slope\"]"});
  const StepOutcome outcome = run.step();
  EXPECT_EQ(run.weight("slope"), 0);
  EXPECT_NE(run.weight("offset"), 0);
  EXPECT_NEAR(outcome.record.gradient_norm, std::abs(first_step_by_hand().offset), 1e-5);
}

TEST(TrainStep, TheMovingAverageForgetsTheFirstWeights) {
  World world({}, {});
  LineRun run(world, {"training.average_decay=0.99"});
  run.step();
  const torch::Tensor& average = run.state().update.average();
  const Parameters& parameters = run.task().parameters();
  const double decay = 2.0 / 11;  // (1 + step) / (10 + step), from weights of 0
  EXPECT_NEAR(average[parameters.find("slope")->offset].item<double>(),
              (1 - decay) * run.weight("slope"), 1e-6);
}

TEST(TrainStep, WhatIsNotFiniteEndsTheRunAndLeavesTheWeights) {
  World world({}, {});
  LineRun run(world);
  run.step();
  const float slope = run.weight("slope");
  auto spoil = [](PointsBatch& b) { b.y.fill_(std::numeric_limits<float>::quiet_NaN()); };
  EXPECT_THROW(run.changed_step(spoil), DivergedError);
  EXPECT_EQ(run.weight("slope"), slope);
  EXPECT_EQ(run.state().position.step, 1);
}

TEST(TrainStep, TwoRanksTakeTheStepOfOne) {
  World alone({}, {});
  LineRun one(alone);
  for (int i = 0; i < 5; ++i) one.step();
  const float slope = one.weight("slope"), offset = one.weight("offset");
  expect_all_well(run_ranks(2, [&](World& world) {
    LineRun run(world);
    for (int i = 0; i < 5; ++i) run.step();
    EXPECT_NEAR(run.weight("slope"), slope, 1e-6);
    EXPECT_NEAR(run.weight("offset"), offset, 1e-6);
    EXPECT_EQ(run.state().position.targets_seen, 40);
  }));
}

TEST(TrainStep, ARankWithoutAShareTakesTheSameStep) {
  expect_all_well(run_ranks(3, [](World& world) {
    LineRun run(world, {"points.batch=2"});
    run.step();
    const std::vector<std::string> all =
        world.all_gather_strings(fmt::format("{}", run.weight("slope")));
    EXPECT_EQ(all[0], all[1]);
    EXPECT_EQ(all[0], all[2]);
    EXPECT_NE(run.weight("slope"), 0);
  }));
}

TEST(TrainStep, UnequalSharesTakeTheSameStep) {
  World alone({}, {});
  LineRun one(alone, {"points.batch=16"});
  for (int i = 0; i < 5; ++i) one.step();
  const float slope = one.weight("slope"), offset = one.weight("offset");
  expect_all_well(run_ranks(3, [&](World& world) {
    LineRun run(world, {"points.batch=16"});
    run.divide({{1714, 1}, {857, 3}, {429, 1}});
    StepOutcome outcome;
    for (int i = 0; i < 5; ++i) outcome = run.step();
    EXPECT_EQ(outcome.record.items, 16);
    EXPECT_EQ(outcome.left.targets, std::vector<int64_t>({9, 5, 2}).at(world.rank()));
    EXPECT_NEAR(run.weight("slope"), slope, 1e-6);
    EXPECT_NEAR(run.weight("offset"), offset, 1e-6);
  }));
}

// Rank 0 has 2 of the 8 points, rank 1 has 6: each of the 2 weighs three times as much.
TEST(TrainStep, TakesTheMeanOfTheRanksMeansWhereAsked) {
  const RankShares unequal{{1000, 1}, {3000, 1}};
  World alone({}, {});
  LineRun exact(alone);
  exact.step();
  const float exact_slope = exact.weight("slope");
  expect_all_well(run_ranks(2, [&](World& world) {
    LineRun run(world, {"training.gradient_mean=\"ranks\""});
    run.divide(unequal);
    const StepParts parts(unequal);
    std::vector<ByHand> means;
    for (int rank = 0; rank < 2; ++rank) {
      LineTask task;
      const std::unique_ptr<Batch> batch =
          task.make_batch({.part = parts.of_rank(rank).front(), .parts = parts});
      means.emplace_back(static_cast<const PointsBatch&>(*batch));
    }
    const StepOutcome outcome = run.step();
    EXPECT_EQ(outcome.left.targets, world.rank() == 0 ? 2 : 6);
    const double slope = -0.1 * (means[0].slope + means[1].slope) / 2;
    EXPECT_NEAR(run.weight("slope"), slope, 1e-6);
    EXPECT_NEAR(run.weight("offset"), -0.1 * (means[0].offset + means[1].offset) / 2, 1e-6);
    EXPECT_GT(std::abs(slope - exact_slope), 1e-3);  // else this test would show nothing
    EXPECT_NEAR(outcome.record.gradient_norm,
                std::hypot(means[0].slope + means[1].slope, means[0].offset + means[1].offset) / 2,
                1e-5);
  }));
}

TEST(TrainStep, WhereARankRunsOutOfMemoryNothingChangesAndTheStepCanBeTakenInSmallerParts) {
  World alone({}, {});
  LineRun one(alone);
  one.step();
  const float slope = one.weight("slope");
  expect_all_well(run_ranks(2, [&](World& world) {
    LineRun run(world, {"points.room=[0, 2]"});
    const StepOutcome failed = run.step();
    EXPECT_TRUE(failed.out_of_memory);
    EXPECT_FALSE(failed.counts);
    EXPECT_EQ(failed.too_many_items, world.rank() == 1 ? 4 : 0);
    EXPECT_EQ(run.state().position.step, 0);
    EXPECT_EQ(run.weight("slope"), 0);
    run.divide({{1000, 1}, {1000, 2}});
    const StepOutcome taken = run.step();
    EXPECT_FALSE(taken.out_of_memory);
    EXPECT_EQ(taken.record.items, 8);
    EXPECT_NEAR(run.weight("slope"), slope, 1e-6);
  }));
}

TEST(TrainStep, AnyRanksWishReachesAll) {
  expect_all_well(run_ranks(2, [](World& world) {
    LineRun run(world);
    const StepOutcome quiet = run.step();
    EXPECT_FALSE(quiet.stop.interrupted || quiet.stop.out_of_time);
    const StepOutcome told = run.step({.interrupted = world.rank() == 1});
    EXPECT_TRUE(told.stop.interrupted);
    EXPECT_FALSE(told.stop.out_of_time);
  }));
}

// Momentum, average and position are part of what goes on.
TEST(TrainingState, RestoredTakesTheSameStepsBitByBit) {
  TemporaryFolder folder;
  const std::vector<std::string> settings = {"training.average_decay=0.9",
                                             "optimizer.momentum=0.9"};
  World world({}, {});
  LineRun whole(world, settings);
  for (int i = 0; i < 3; ++i) whole.step();
  const WrittenCheckpoint written = write_now(folder.path(), whole.state().collect(true));
  EXPECT_EQ(written.step, 3);
  EXPECT_GT(written.bytes, 0);
  for (int i = 0; i < 3; ++i) whole.step();

  LineRun resumed(world, settings);
  resumed.state().restore({.path = (folder.path() / "step_3").string(), .step = 3});
  EXPECT_EQ(resumed.state().position.step, 3);
  EXPECT_EQ(resumed.state().position.targets_seen, 24);
  resumed.skip_to(resumed.state().position);
  for (int i = 0; i < 3; ++i) resumed.step();
  EXPECT_TRUE(
      torch::equal(resumed.task().parameters().values(), whole.task().parameters().values()));
  EXPECT_TRUE(torch::equal(resumed.state().update.average(), whole.state().update.average()));
}

// Whichever machine is lost, another one's checkpoint has what single ranks alone had.
TEST(TrainingState, IsWholeOnEveryRankThatKeepsCheckpoints) {
  TemporaryFolder folders[3];
  expect_all_well(run_ranks(3, [&](World& world) {
    LineRun run(world, {"optimizer.momentum=0.9", "comm.strategy=local_sgd", "comm.local_steps=8",
                        "comm.local_after=1"});
    for (int i = 0; i < 3; ++i) run.step();
    const bool keeps = world.rank() != 1;
    const CheckpointContent content = run.state().collect(keeps);
    if (keeps) write_now(folders[world.rank()].path(), content);
    const std::vector<RankState> at_once = gather_rank_states(run.state(), keeps);
    const std::vector<RankState> one_by_one = gather_rank_states(run.state(), keeps, 0);
    ASSERT_EQ(one_by_one.size(), 3);
    for (std::size_t r = 0; r < one_by_one.size(); ++r) {
      ASSERT_EQ(one_by_one[r].arrays.size(), at_once[r].arrays.size());
      for (std::size_t i = 0; i < one_by_one[r].arrays.size(); ++i) {
        EXPECT_TRUE(torch::equal(one_by_one[r].arrays[i].data, at_once[r].arrays[i].data));
      }
    }
  }));
  // All but the weights, which are equal where groups meet.
  for (const char* name :
       {"optimizer.safetensors", "state.json", "rank_1.safetensors", "rank_2.safetensors"}) {
    EXPECT_EQ(read_file(folders[0].path() / "step_3" / name),
              read_file(folders[2].path() / "step_3" / name))
        << name;
  }
  EXPECT_NE(read_file(folders[0].path() / "step_3/rank_1.safetensors"),
            read_file(folders[0].path() / "step_3/rank_2.safetensors"));
}

// What is written beside the training is the state when writing began, to the last byte.
TEST(TrainingState, IsSavedAsItWasWhenWritingBegan) {
  TemporaryFolder now, beside;
  World world({}, {});
  LineRun run(world, {"training.average_decay=0.9", "optimizer.momentum=0.9"});
  for (int i = 0; i < 3; ++i) run.step();
  write_now(now.path(), run.state().collect(true));
  CheckpointWriter writer;
  writer.start(beside.path(), own_copy(run.state().collect(true)));
  for (int i = 0; i < 3; ++i) run.step();
  const std::optional<WrittenCheckpoint> written = writer.wait();
  ASSERT_TRUE(written);
  EXPECT_EQ(written->step, 3);
  EXPECT_FALSE(writer.wait());  // told once
  EXPECT_FALSE(writer.take());
  const std::string done = read_file(beside.path() / "step_3/DONE");
  EXPECT_EQ(done, read_file(now.path() / "step_3/DONE"));  // the hash of every file
  EXPECT_NE(done.find("optimizer.safetensors"), std::string::npos);
  EXPECT_NE(done.find("average.safetensors"), std::string::npos);
}

TEST(TrainingState, SaysWhichCheckpointItCannotGoOnFrom) {
  World world({}, {});
  LineRun run(world);
  const SharedCheckpoint nowhere{.path = "/nowhere/step_3", .step = 3};
  EXPECT_ERROR(run.state().restore(nowhere), Error, "resuming from /nowhere/step_3");
}

}  // namespace
}  // namespace lockstep
