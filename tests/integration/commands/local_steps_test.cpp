// Whole runs whose ranks meet now and then.
#include <gtest/gtest.h>

#include <cmath>

#include "formats/tensor_file.h"
#include "support/tiny_runs.h"

namespace lockstep {
namespace {

class LocalStepsRuns : public TinyRuns {
 protected:
  std::string bytes(const std::string& name, int step, const std::string& file) const {
    return read_file(run(name) / "checkpoints" / fmt::format("step_{}", step) / file);
  }
};

// With plain SGD and no clipping the mean of the ranks' weights after one step is the step with the
// mean gradient: only rounding differs.
TEST_F(LocalStepsRuns, OfOneStepWithPlainSgdAreTheUsualSteps) {
  const std::string sgd =
      "optimizer.name=sgd optimizer.momentum=0 optimizer.lr=0.5 training.clip_norm=0 "
      "training.check_weights_every=5 evaluation.every=10 evaluation.metrics='[\"loss\"]'";
  ASSERT_EQ(train("usual", 2, sgd).exit_code, 0);
  ProgramResult local =
      train("local", 2, sgd + " comm.strategy=local_sgd comm.local_steps=1 comm.local_after=3");
  ASSERT_EQ(local.exit_code, 0) << local.errors;
  auto usual_loss = metrics_of(run("usual"), "evaluation");
  auto local_loss = metrics_of(run("local"), "evaluation");
  ASSERT_EQ(usual_loss.size(), 2u);
  ASSERT_EQ(local_loss.size(), 2u);
  for (int i : {0, 1}) {
    double usual = usual_loss[i].at("eval/loss"), found = local_loss[i].at("eval/loss");
    EXPECT_NEAR(found, usual, 1e-4 * usual);
  }
  EXPECT_EQ(metrics_of(run("local"), "meeting").size(), 17u);
}

// Moments of both ranks, outer momentum, PowerSGD's errors: all of it is in the checkpoint.
TEST_F(LocalStepsRuns, GoOnFromACheckpointBitByBit) {
  const std::string words =
      "comm.strategy=diloco comm.local_steps=5 comm.local_after=5 comm.hook=powersgd+bf16 "
      "comm.powersgd.rank=2 comm.powersgd.start_step=2 checkpoint.every=8 checkpoint.keep=9 "
      "training.average_decay=0.9 ";
  ProgramResult whole = train("whole", 2, words);
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  ASSERT_EQ(train("half", 2, words + "training.steps=15").exit_code, 0);
  ProgramResult rest = train("half", 2, words + "--resume");
  ASSERT_EQ(rest.exit_code, 0) << rest.errors;
  for (const char* file : {"weights.safetensors", "average.safetensors", "optimizer.safetensors",
                           "outer.safetensors", "rank_0.safetensors", "rank_1.safetensors"}) {
    EXPECT_TRUE(bytes("whole", 20, file) == bytes("half", 20, file)) << file;
  }
  // A checkpoint that is due between two meetings waits for the next one.
  EXPECT_TRUE(fs::exists(run("whole") / "checkpoints/step_10"));
  EXPECT_FALSE(fs::exists(run("whole") / "checkpoints/step_8"));
  // Other ranks than it was saved from: it goes on and says what began anew.
  ProgramResult alone = train("half", 1, words + "--resume training.steps=25");
  EXPECT_EQ(alone.exit_code, 0) << alone.errors;
}

TEST_F(LocalStepsRuns, OverlapMeetingsAndStillLearn) {
  ProgramResult result =
      train("overlap", 2,
            "comm.strategy=diloco comm.local_steps=10 comm.local_after=20 comm.overlap_steps=4 "
            "comm.hook=fp16 training.steps=120 training.check_weights_every=50 evaluation.every=60 "
            "evaluation.metrics='[\"loss\"]'");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  auto evaluations = metrics_of(run("overlap"), "evaluation");
  ASSERT_EQ(evaluations.size(), 2u);
  EXPECT_LT(evaluations[1].at("eval/loss").get<double>(),
            0.9 * evaluations[0].at("eval/loss").get<double>());
}

TEST_F(LocalStepsRuns, OfFp16CountLostStepsOfOneGroupToo) {
  ProgramResult result =
      train("fp16", 2,
            "run.precision=fp16 comm.strategy=local_sgd comm.local_steps=4 comm.local_after=0 "
            "loss_scale.initial=1e11 loss_scale.maximum=1e12 training.check_weights_every=4");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(metrics_of(run("fp16"), "meeting").size(), 5u);
  auto steps = metrics_of(run("fp16"), "step");
  ASSERT_FALSE(steps.empty());
  EXPECT_LT(steps.size(), 20u);  // rank 0 lost some
  EXPECT_GT(steps.back().at("train/skipped_steps").get<int>(), 0);
}

}  // namespace
}  // namespace lockstep
