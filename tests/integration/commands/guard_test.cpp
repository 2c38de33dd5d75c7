// Steps that would spoil the weights, and bits that change by themselves ([guard],
// docs/training.md#guards), in runs of the line task, which can be told to go wrong.
#include <gtest/gtest.h>

#include "formats/tensor_file.h"
#include "support/program.h"

namespace lockstep {
namespace {

class GuardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(config(),
               "[task]\nname = \"line\"\n[points]\ntrain = 1200\nbatch = 12\n[optimizer]\n"
               "name = \"adam\"\nlr = 0.05\n[schedule]\nname = \"fixed\"\n[training]\nsteps = 60\n"
               "check_weights_every = 10\nclip_norm = 0.0\n[evaluation]\nevery = 0\n[checkpoint]\n"
               "every = 10\nkeep = 9\n[run]\nprecision = \"fp32\"\n");
  }
  fs::path config() const { return folder_.path() / "line.toml"; }
  fs::path run(const std::string& name) const { return folder_.path() / name; }
  ProgramResult train(const std::string& name, int ranks, const std::string& words = "") const {
    return run_program(LOCKSTEP_OWN_TASK,
                       fmt::format("launch -n {} -- train {} run.folder={} {}", ranks,
                                   config().string(), run(name).string(), words),
                       "OMP_NUM_THREADS=1");
  }
  std::string file_of(const std::string& name, const char* file, int step = 60) const {
    return read_file(run(name) / "checkpoints" / fmt::format("step_{}", step) / file);
  }
  // The only event of the guard, after checking that there is no other.
  nlohmann::json intervention(const std::string& name) const {
    const auto events = metrics_of(run(name), "guard");
    EXPECT_EQ(events.size(), 1u);
    return events.empty() ? nlohmann::json() : events.front();
  }

  TemporaryFolder folder_;
};

TEST_F(GuardTest, ABatchWithAnExplodingGradientIsPassedOverAndKept) {
  const std::string bad = "points.bad_step=45 points.bad_factor=1000";
  const ProgramResult result = train("run", 2, bad + " guard.norm=skip");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const auto event = intervention("run");
  EXPECT_EQ(event.at("step"), 45);
  EXPECT_EQ(event.at("action"), "skip");
  EXPECT_NE(event.at("why").get<std::string>().find("times its mean of"), std::string::npos);
  for (int rank : {0, 1}) {
    const TensorFile batch(run("run") / "bad_batches" /
                           fmt::format("step_45.rank_{}.safetensors", rank));
    EXPECT_EQ(batch.get("0.y").shape, std::vector<int64_t>{6});
  }
  // Steps are counted without it: 60 updates, none of them large.
  const auto steps = metrics_of(run("run"), "step");
  ASSERT_EQ(steps.size(), 60u);
  for (const auto& step : steps) EXPECT_LT(step.at("train/loss").get<double>(), 100);
}

TEST_F(GuardTest, AStepThatIsNotFiniteGoesBackToTheNewestCheckpointTheSameWayEveryTime) {
  const std::string words = "points.bad_step=46 points.bad_factor=1e30 guard.not_finite=roll_back";
  const ProgramResult whole = train("whole", 2, words);
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  const auto event = intervention("whole");
  EXPECT_EQ(event.at("step"), 46);
  EXPECT_EQ(event.at("action"), "roll_back");
  EXPECT_NE(whole.errors.find("went back to the weights of"), std::string::npos) << whole.errors;
  ASSERT_EQ(metrics_of(run("whole"), "step").size(), 60u);
  // A run that is stopped between the checkpoint and the step, and one that is stopped after it.
  for (int stop : {43, 48}) {
    const std::string name = fmt::format("stopped_{}", stop);
    ASSERT_EQ(train(name, 2, words + fmt::format(" training.steps={} checkpoint.every=20", stop))
                  .exit_code,
              0);
    ASSERT_EQ(train(name, 2, words + " --resume").exit_code, 0);
    ASSERT_EQ(metrics_of(run(name), "step").back().at("step"), 60);
  }
}

TEST_F(GuardTest, AResumedRunGoesBackAsTheOneThatWasNotStopped) {
  const std::string words = "points.bad_step=46 points.bad_factor=1e30 guard.not_finite=roll_back";
  ASSERT_EQ(train("whole", 2, words).exit_code, 0);
  ASSERT_EQ(train("parts", 2, words + " training.steps=50").exit_code, 0);
  ASSERT_EQ(train("parts", 2, words + " --resume").exit_code, 0);
  for (const char* file : {"weights.safetensors", "optimizer.safetensors"}) {
    EXPECT_EQ(file_of("parts", file), file_of("whole", file));
  }
}

TEST_F(GuardTest, WithoutACheckpointToGoBackToTheRunDiverged) {
  const ProgramResult result =
      train("run", 1, "points.bad_step=3 points.bad_factor=1e30 guard.not_finite=roll_back");
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_NE(result.errors.find("there is no checkpoint to go back to"), std::string::npos)
      << result.errors;
}

TEST_F(GuardTest, AStopKeepsTheBatch) {
  const ProgramResult result = train("run", 1, "points.bad_step=3 points.bad_factor=1e30");
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_TRUE(fs::exists(run("run") / "bad_batches" / "step_3.rank_0.safetensors"));
}

TEST_F(GuardTest, ARankWhoseBitsChangedIsNamedAndMendedFromAnother) {
  const ProgramResult result = train("run", 3, "points.flip_step=25 points.flip_rank=2");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const auto event = intervention("run");
  EXPECT_EQ(event.at("kind"), "unequal_ranks");
  EXPECT_EQ(event.at("action"), "mend");
  EXPECT_EQ(event.at("step"), 30);  // the next check
  const std::string why = event.at("why");
  EXPECT_NE(why.find("rank 2"), std::string::npos) << why;
  EXPECT_NE(why.find("holds other bits than the 2 other ranks in the weights"), std::string::npos)
      << why;
}

TEST_F(GuardTest, OfTwoRanksThatDisagreeBothGoBack) {
  const ProgramResult result = train("run", 2, "points.flip_step=25 points.flip_rank=0");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const auto event = intervention("run");
  EXPECT_EQ(event.at("action"), "roll_back");
  EXPECT_EQ(event.at("step"), 30);
  EXPECT_NE(event.at("why").get<std::string>().find("hold different bits in the weights"),
            std::string::npos);
}

TEST_F(GuardTest, ARankWhoseBitsChangedEndsARunThatAsksForIt) {
  const ProgramResult result =
      train("run", 3, "points.flip_step=25 points.flip_rank=1 guard.unequal_ranks=stop");
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_NE(result.errors.find("rank 1"), std::string::npos) << result.errors;
}

TEST_F(GuardTest, GoingBackIsNotForGroupsOfLocalSteps) {
  const ProgramResult result = train("run", 2, "guard.norm=roll_back comm.strategy=local_sgd");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.errors.find("roll_back"), std::string::npos) << result.errors;
}

}  // namespace
}  // namespace lockstep
