// Whole runs with every optimizer and number format: resumed and sharded they give the same bits,
// and what 16 bits cannot hold ends well.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/digest.h"
#include "support/tiny_runs.h"

namespace lockstep {
namespace {

class PrecisionTest : public TinyRuns {
 protected:
  // With the weights of the ranks compared in every step.
  ProgramResult train(const std::string& name, int ranks, const std::string& words) const {
    return TinyRuns::train(name, ranks,
                           "evaluation.limit=4 training.check_weights_every=1 " + words);
  }

  void expect_same_checkpoints(const std::string& a, const std::string& b, int step) const {
    for (const char* file :
         {"weights.safetensors", "average.safetensors", "optimizer.safetensors"}) {
      auto hash = [&](const std::string& name) {
        return sha256_of_file(run(name) / fmt::format("checkpoints/step_{}", step) / file);
      };
      EXPECT_EQ(hash(a), hash(b)) << file;
    }
  }
};

const char* const kSame =
    "schedule.name=constant schedule.warmup_steps=0 training.average_decay=0.9 ";

// One run without interruption on one layout, one resumed in between that changes the layout.
TEST_F(PrecisionTest, OptimizersGiveTheSameBitsResumedAndSharded) {
  const std::pair<const char*, const char*> kinds[] = {
      {"sgd", "optimizer.name=sgd optimizer.lr=0.1 optimizer.nesterov=true run.precision=bf16"},
      {"novograd", "optimizer.name=novograd optimizer.lr=0.02 optimizer.weight_decay=1e-4"},
      {"lazy", "optimizer.name=lazy_adam larc.mode=clip larc.eta=0.02"},
  };
  for (const auto& [name, kind] : kinds) {
    SCOPED_TRACE(name);
    const std::string words = kSame + std::string(kind), sharded = name + std::string("-sharded");
    ASSERT_EQ(train(name, 2, words + " training.steps=6").exit_code, 0);
    const std::string shard = words + " training.shard_optimizer=true";
    ASSERT_EQ(train(sharded, 2, shard + " training.steps=3").exit_code, 0);
    ProgramResult resumed = train(sharded, 2, shard + " training.steps=6 --resume");
    ASSERT_EQ(resumed.exit_code, 0) << resumed.errors;
    expect_same_checkpoints(name, sharded, 6);
    const auto steps = metrics_of(run(name), "step");
    EXPECT_LT(steps.back().at("train/loss"), steps.front().at("train/loss"));
  }
}

// An absurd first scale: both ranks skip the same steps (their weights are compared at every step)
// until a scale fits, and the run learns as if nothing had been. 2^40 is over what fp16 holds even
// for a gradient divided by all targets.
TEST_F(PrecisionTest, AllRanksSkipTheSameOverflowsInHalf) {
  ProgramResult result = train("overflow", 2,
                               "run.precision=fp16 training.steps=40 loss_scale.name=torch "
                               "loss_scale.initial=1099511627776");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_NE(result.errors.find("gradient overflow; skipping the update, loss scale 1099511627776 "
                               "-> 549755813888"),
            std::string::npos)
      << result.errors;
  const auto steps = metrics_of(run("overflow"), "step");
  ASSERT_EQ(steps.size(), 40u);  // a skipped step does not count
  EXPECT_GE(steps.front().at("train/skipped_steps"), 10);
  EXPECT_LT(steps.back().at("train/loss_scale"), 1e9);
  EXPECT_LT(steps.back().at("train/loss"), 0.9 * steps.front().at("train/loss").get<double>());
}

// The window is short, so that the scale moves on both sides of the interruption.
TEST_F(PrecisionTest, ResumedHalfGivesTheSameBits) {
  const std::string words = kSame + std::string(
                                        "run.precision=fp16 loss_scale.name=apex "
                                        "loss_scale.window=4 loss_scale.initial=16777216");
  ASSERT_EQ(train("half", 2, words + " training.steps=12").exit_code, 0);
  ASSERT_EQ(train("halves", 2, words + " training.steps=7").exit_code, 0);
  ProgramResult resumed = train("halves", 2, words + " training.steps=12 --resume");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.errors;
  expect_same_checkpoints("half", "halves", 12);
  auto scales = [&](const std::string& name) {
    std::vector<double> out;
    for (const auto& step : metrics_of(run(name), "step"))
      out.push_back(step.at("train/loss_scale"));
    return out;
  };
  EXPECT_EQ(scales("half"), scales("halves"));
  EXPECT_GT(scales("half").back(), 0);
}

TEST_F(PrecisionTest, HalfThatAlwaysOverflowsGoesOnInFp32) {
  const std::string words = kSame + std::string(
                                        "run.precision=fp16 loss_scale.name=static "
                                        "loss_scale.initial=1e15");
  ProgramResult result = train("fallback", 2, words + " training.steps=20");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_NE(result.errors.find("the run goes on in fp32"), std::string::npos) << result.errors;
  const auto steps = metrics_of(run("fallback"), "step");
  ASSERT_EQ(steps.size(), 20u);
  EXPECT_FALSE(steps.front().contains("train/loss_scale"));
  EXPECT_LT(steps.back().at("train/loss"), 0.9 * steps.front().at("train/loss").get<double>());
}

// The three formats start alike and stay near each other.
TEST_F(PrecisionTest, FormatsGiveTheSameLossesWithinTheirRounding) {
  std::vector<std::vector<double>> losses;
  for (const char* precision : {"fp32", "bf16", "fp16"}) {
    ASSERT_EQ(train(std::string("as-") + precision, 1,
                    fmt::format("run.precision={} model.dropout=0", precision))
                  .exit_code,
              0);
    losses.emplace_back();
    for (const auto& step : metrics_of(run(std::string("as-") + precision), "step")) {
      losses.back().push_back(step.at("train/loss"));
    }
    ASSERT_EQ(losses.back().size(), 20u);
  }
  for (std::size_t i = 0; i < 20; ++i) {
    // Of losses from 4.5 down to 3: bf16 keeps 8 bits, fp16 11.
    EXPECT_NEAR(losses[1][i], losses[0][i], 2e-2 * losses[0][i]) << "bf16, step " << i + 1;
    EXPECT_NEAR(losses[2][i], losses[0][i], 5e-3 * losses[0][i]) << "fp16, step " << i + 1;
  }
}

// After 40 good steps it goes on with a learning rate ten thousand times as large.
TEST_F(PrecisionTest, ALossThatRunsAwayEndsTheRunAndKeepsItsCheckpoints) {
  const std::string words = "training.divergence_sigmas=5 training.divergence_recent=4 ";
  ASSERT_EQ(train("runaway", 2, words + "training.steps=40").exit_code, 0);
  ProgramResult result = train("runaway", 2, words + "training.steps=400 optimizer.lr=30 --resume");
  EXPECT_EQ(result.exit_code, 5) << result.errors;
  EXPECT_NE(result.errors.find("deviations"), std::string::npos) << result.errors;
  EXPECT_TRUE(fs::exists(run("runaway") / "checkpoints/step_40/DONE"));
  EXPECT_LT(metrics_of(run("runaway"), "step").size(), 60u);
}

}  // namespace
}  // namespace lockstep
