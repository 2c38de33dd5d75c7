#include "train/loop/step_sizes.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "train/config/run_config.h"

namespace lockstep {
namespace {

constexpr int64_t kEpochs = 4;

// A task of 640 items, opened as rank 0 of so many ranks.
RunConfig opened(int64_t ranks) {
  ConfigSource source = ConfigSource::from_text("", "run.toml");
  for (const char* word : {"task.name=pretend", "pretend.train_items=640", "batch.per_rank=16",
                           "model.parameters=8", "schedule.name=one_cycle", "optimizer.name=sgd"}) {
    source.override_with(word);
  }
  source.override_with("optimizer.momentum=0.9");
  RunConfig out = read_run_config(std::move(source));
  TaskContext context;
  context.ranks = ranks;
  out.task->open(context);
  return out;
}

TEST(StepSizes, TextHasWhatTheRateWouldBe) {
  const StepSizeFacts facts{
      .step = {512, "images"}, .per_rank = 256, .ranks = 2, .updates_an_epoch = 2503, .lr = 1};
  EXPECT_EQ(
      step_size_text(facts),
      "512 images a step (256 a rank x 2 ranks), 2,503 steps an epoch; optimizer.lr = 1 is as "
      "configured: made for 256 images, it scales to 2 (linear) or 1.41 (square root)");
  EXPECT_EQ(step_size_text({.step = {4096, "tokens"}, .ranks = 2, .updates_an_epoch = 10}),
            "4,096 tokens a step (over 2 ranks), 10 steps an epoch");
  EXPECT_EQ(to_json(facts).at("updates_an_epoch"), 2503);
}

TEST(StepSizes, ThatStayChangeNothing) {
  RunConfig config = opened(2);
  RunPosition position{.step = 5, .step_in_epoch = 5, .step_size = {32, "items"}};
  EXPECT_FALSE(continue_epoch(*config.task, config.schedule, kEpochs, position));
  EXPECT_TRUE(position.done.empty());
  EXPECT_EQ(config.task->steps_in_epoch(0), 20);
}

// From 2 ranks to 1 after 5 of 20 steps of the second epoch, then to 4 after 2 more.
TEST(StepSizes, ThatChangeDivideTheRestOfTheEpochAndKeepTheSchedulesPlace) {
  RunPosition position{.step = 25, .epoch = 1, .step_in_epoch = 5, .step_size = {32, "items"}};
  RunConfig one = opened(1);
  const auto before = continue_epoch(*one.task, one.schedule, kEpochs, position);
  ASSERT_TRUE(before);
  EXPECT_EQ(before->size, 32);
  EXPECT_EQ(one.task->steps_in_epoch(1), 5 + 30);
  EXPECT_EQ(one.task->steps_in_epoch(2), 40);
  EXPECT_EQ(position.step + position.schedule_shift, 40 + 10) << "5/16 of the run, as before";

  position.step += 2;
  position.step_in_epoch += 2;
  RunConfig four = opened(4);
  ASSERT_TRUE(continue_epoch(*four.task, four.schedule, kEpochs, position));
  const std::vector<EpochStretch> done = {{5, {32, "items"}}, {2, {16, "items"}}};
  EXPECT_EQ(position.done, done);
  EXPECT_EQ(four.task->steps_in_epoch(1), 7 + 7);
  EXPECT_EQ(position.step + position.schedule_shift, 20 - 7);
  EXPECT_EQ(position_from_json(to_json(position)).done, done);
}

TEST(StepSizes, LeaveASchedulesStepWhereItCountsSteps) {
  RunConfig config = opened(1);
  config.schedule.name = "noam";
  RunPosition position{.step = 25, .epoch = 1, .step_in_epoch = 5, .step_size = {32, "items"}};
  EXPECT_TRUE(continue_epoch(*config.task, config.schedule, kEpochs, position));
  EXPECT_EQ(position.schedule_shift, 0);
}

}  // namespace
}  // namespace lockstep
