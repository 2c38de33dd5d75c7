#include "train/listeners/imagenet_lines.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(ImagenetLines, AreThoseOfTheReferenceRun) {
  StepRecord step, epoch;
  step.epoch = 1;
  step.step_in_epoch = 2499;
  step.steps_in_epoch = 2503;
  step.loss = 2.88081;
  step.accuracy = 0.4336;
  step.top5 = 0.6484;
  epoch.loss = 3.20694;
  epoch.accuracy = 0.3321;
  epoch.top5 = 0.5746;
  EXPECT_EQ(epoch_line(step, epoch),
            "Epoch: [1][2499/2503] Loss 2.8808e+00 (3.2069e+00) Acc@1 43.36 (33.21) Acc@5 64.84 "
            "(57.46)");
}

TEST(ImagenetLines, OfATestHaveTheBatchAndTheMeanSoFar) {
  const EvaluationProgress batch{
      .batch = 9, .batches = 20, .items = 50, .correct = 25, .top5 = 40, .loss = 100};
  const EvaluationProgress all{.items = 500, .correct = 200, .top5 = 350, .loss = 1250};
  EXPECT_EQ(test_line(batch, all),
            "Test: [9/20] Loss 2.0000e+00 (2.5000e+00) Acc@1 50.00 (40.00) Acc@5 80.00 (70.00)");
}

TEST(ImagenetLines, TellTheTimeAndTheSplit) {
  EXPECT_EQ(clock_text(48 * 60 + 45.9), "0:48:45");
  EXPECT_EQ(clock_text(3600 + 30 * 60 + 40), "1:30:40");
  EXPECT_EQ(split_title("val"), "Val");
}

}  // namespace
}  // namespace lockstep
