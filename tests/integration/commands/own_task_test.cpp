// A task that only tests have (tests/support/own_task.cpp): what the loop, checkpoints, evaluation
// and report know of tasks is behind one interface.
#include <gtest/gtest.h>

#include "base/file.h"
#include "support/program.h"

namespace lockstep {
namespace {

class OwnTaskTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(config(),
               "[task]\nname = \"line\"\n[points]\nbatch = 12\n[optimizer]\nname = \"sgd\"\n"
               "lr = 0.2\nmomentum = 0.0\n[schedule]\nname = \"fixed\"\n[training]\nsteps = 40\n"
               "progress_every = 10\n[evaluation]\nevery = 10\n[checkpoint]\nevery = 10\n"
               "[run]\nprecision = \"fp32\"\n");
  }
  fs::path config() const { return folder_.path() / "line.toml"; }
  fs::path run(const std::string& name) const { return folder_.path() / name; }

  ProgramResult program(const std::string& words) const {
    return run_program(LOCKSTEP_OWN_TASK, words, "OMP_NUM_THREADS=1");
  }
  ProgramResult train(const std::string& name, int ranks, const std::string& words = "") const {
    return program(fmt::format("launch -n {} -- train {} run.folder={} {}", ranks,
                               config().string(), run(name).string(), words));
  }
  std::string weights(const std::string& name) const {
    return read_file(run(name) / "checkpoints" / "step_40" / "weights.safetensors");
  }

  TemporaryFolder folder_;
};

TEST_F(OwnTaskTest, TrainsResumesEvaluatesAndReports) {
  const ProgramResult whole = train("whole", 2);
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  const auto evaluations = metrics_of(run("whole"), "evaluation");
  ASSERT_EQ(evaluations.size(), 4u);
  EXPECT_LT(evaluations.back().at("eval/loss").get<double>(), 0.01);

  ASSERT_EQ(train("parts", 2, "training.steps=20").exit_code, 0);
  const ProgramResult rest = train("parts", 2, "--resume training.steps=40");
  ASSERT_EQ(rest.exit_code, 0) << rest.errors;
  EXPECT_EQ(weights("parts"), weights("whole"));

  const ProgramResult one = train("one", 1);
  ASSERT_EQ(one.exit_code, 0) << one.errors;
  EXPECT_NEAR(metrics_of(run("one"), "evaluation").back().at("eval/loss").get<double>(),
              evaluations.back().at("eval/loss").get<double>(), 1e-6);

  const ProgramResult evaluated = program("evaluate " + run("whole").string());
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.errors;
  EXPECT_NE(evaluated.output.find("loss 0.00"), std::string::npos) << evaluated.output;

  const ProgramResult report = program("report " + run("whole").string());
  ASSERT_EQ(report.exit_code, 0) << report.errors;
  EXPECT_TRUE(fs::exists(run("whole") / "report" / "report.md"));
}

TEST_F(OwnTaskTest, WhatItIsNotForIsSaid) {
  ASSERT_EQ(train("run", 1, "training.steps=10").exit_code, 0);
  for (const char* use : {"translate ", "classify x.png ", "export --out x "}) {
    const ProgramResult refused = program(use + run("run").string());
    EXPECT_EQ(refused.exit_code, 2) << use << refused.errors;
  }
  const ProgramResult fitted = train("fitted", 1, "training.fit_memory=true");
  EXPECT_EQ(fitted.exit_code, 2);
  EXPECT_NE(fitted.errors.find("training.fit_memory"), std::string::npos) << fitted.errors;
}

}  // namespace
}  // namespace lockstep
