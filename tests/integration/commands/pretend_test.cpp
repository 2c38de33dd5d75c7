// The task that only pretends to compute: what is real in it has the same digits on any number of
// ranks and after a resume.
#include <gtest/gtest.h>

#include "base/file.h"
#include "support/expect_says.h"
#include "support/program.h"

namespace lockstep {
namespace {

class PretendTest : public ::testing::Test {
 protected:
  fs::path run(const std::string& name) const { return folder_.path() / name; }
  // Trains 12 steps of 5 ms.
  ProgramResult train(const std::string& name, int ranks, const std::string& words = "",
                      const std::string& before = "") const {
    return run_lockstep(fmt::format("launch -n {} -- train {}/configs/pretend.toml run.folder={} "
                                    "pretend.step_milliseconds=5 pretend.evaluation_milliseconds=1 "
                                    "training.steps=12 evaluation.every=4 checkpoint.every=4 {}",
                                    ranks, LOCKSTEP_SOURCE, run(name).string(), words),
                        before + " OMP_NUM_THREADS=1");
  }
  std::string weights(const std::string& name) const {
    return read_file(run(name) / "checkpoints" / "step_12" / "weights.safetensors");
  }
  std::vector<double> losses(const std::string& name) const {
    std::vector<double> out;
    for (const auto& step : metrics_of(run(name), "step")) out.push_back(step.at("train/loss"));
    return out;
  }

  TemporaryFolder folder_;
};

TEST_F(PretendTest, HasTheSameDigitsOnAnyNumberOfRanks) {
  const ProgramResult one = train("one", 1);
  ASSERT_EQ(one.exit_code, 0) << one.errors;
  ASSERT_EQ(losses("one").size(), 12u);
  EXPECT_LT(losses("one").back(), 0.95 * losses("one").front());
  const ProgramResult three = train("three", 3, "batch.accumulate=2 'pretend.slow=[\"1:2.0\"]'");
  ASSERT_EQ(three.exit_code, 0) << three.errors;
  EXPECT_EQ(losses("three"), losses("one"));
  EXPECT_EQ(weights("three"), weights("one"));
}

// As clusters set it, `ulimit -f`: without care the kernel ends the process at such a write.
TEST_F(PretendTest, AFileAtTheLimitOfItsSizeIsAnErrorThatNamesIt) {
  const ProgramResult made = train("limited", 1, "", "ulimit -f 2000;");
  EXPECT_EQ(made.exit_code, 4);
  expect_says(made.errors, "weights.safetensors: cannot be written: File too large");
}

TEST_F(PretendTest, AFolderThatWasRemovedIsSaid) {
  const std::string gone = run("gone").string();
  const ProgramResult made =
      run_lockstep("report", fmt::format("mkdir {0}; cd {0}; rmdir {0}; OMP_NUM_THREADS=1", gone));
  EXPECT_EQ(made.exit_code, 4);
  expect_says(made.errors, "the current folder was removed");
}

TEST_F(PretendTest, ResumesToTheSameDigits) {
  const ProgramResult whole = train("whole", 2);
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  ASSERT_EQ(train("parts", 2, "training.steps=7").exit_code, 0);
  const ProgramResult rest = train("parts", 3, "--resume");
  ASSERT_EQ(rest.exit_code, 0) << rest.errors;
  EXPECT_EQ(losses("parts"), losses("whole"));
  EXPECT_EQ(weights("parts"), weights("whole"));
  const ProgramResult evaluated = run_lockstep("evaluate " + run("whole").string());
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.errors;
  EXPECT_NE(evaluated.output.find("loss 0.0"), std::string::npos) << evaluated.output;
  const ProgramResult report = run_lockstep("report " + run("whole").string());
  EXPECT_EQ(report.exit_code, 0) << report.errors;
}

TEST_F(PretendTest, SaysWhatIsWrong) {
  const ProgramResult slow = train("slow", 1, "'pretend.slow=[\"one\"]'");
  EXPECT_EQ(slow.exit_code, 2);
  EXPECT_NE(slow.errors.find("expected RANK:FACTOR such as \"3:2.0\""), std::string::npos)
      << slow.errors;
}

}  // namespace
}  // namespace lockstep
