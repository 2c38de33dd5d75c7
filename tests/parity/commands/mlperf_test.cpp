// MLPerf logs of real runs before MLPerf's own checker (the package mlperf-logging).
#include <gtest/gtest.h>

#include "support/program.h"
#include "support/python.h"
#include "support/tiny_corpus.h"
#include "support/tiny_images.h"
#include "support/tiny_texts.h"

namespace lockstep {
namespace {

const std::string kMlperf = " logging.mlperf=true 'mlperf.submission_org=Test' ";

class Mlperf : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!python_has("mlperf_logging.compliance_checker.mlp_compliance")) {
      GTEST_SKIP() << "no mlperf-logging for " << LOCKSTEP_PYTHON;
    }
  }

  // Trains FOLDER/tiny.toml into FOLDER/run.
  ProgramResult train(const std::string& words, int ranks = 1) const {
    std::string train = fmt::format("train {0}/tiny.toml run.folder={0}/run {1}",
                                    folder_.path().string(), words + kMlperf);
    if (ranks > 1) train = fmt::format("launch -n {} -- {}", ranks, train);
    return run_lockstep(train, "OMP_NUM_THREADS=1");
  }

  // What the checker says of the run's first attempt.
  PythonResult check(const std::string& ruleset) const {
    return run_python(
        fmt::format("-m mlperf_logging.compliance_checker --usage training --ruleset {0} --werror "
                    "--log_output '{1}/checker.log' '{1}/run/mlperf_0.log'",
                    ruleset, folder_.path().string()));
  }

  TemporaryFolder folder_;
};

TEST_F(Mlperf, AnImageRunPassesAsResnetInTheOpenDivision) {
  write_tiny_images(folder_.path() / "data");
  write_tiny_image_config(folder_.path() / "tiny.toml", folder_.path() / "data");
  const ProgramResult trained =
      train("training.steps=0 training.epochs=2 evaluation.every_epochs=1", 2);
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  for (const char* ruleset : {"1.0.0", "2.1.0", "3.1.0", "4.0.0"}) {
    const PythonResult result = check(ruleset);
    EXPECT_EQ(result.status, 0) << ruleset << "\n" << result.errors;
    EXPECT_NE(result.errors.find("SUCCESS"), std::string::npos) << result.errors;
  }
  EXPECT_NE(check("5.1.0").status, 0) << "it has no resnet any more";
}

TEST_F(Mlperf, ATextRunPassesAsBertWithEvaluationsWithinAnEpoch) {
  write_tiny_bert(folder_.path(), 2);
  ASSERT_EQ(prepare_tiny_texts(folder_.path()), "");
  write_tiny_text_config(folder_.path());
  const ProgramResult trained = train("training.steps=12 evaluation.every=6");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  for (const char* ruleset : {"1.0.0", "4.0.0", "5.0.0"}) {
    const PythonResult result = check(ruleset);
    EXPECT_EQ(result.status, 0) << ruleset << "\n" << result.errors;
  }
}

// Both versions that have the Transformer ask for BLEU 25.
TEST_F(Mlperf, ATranslationRunLacksNothingButTheQuality) {
  ASSERT_EQ(make_tiny_corpus(folder_.path()), "");
  write_tiny_config(folder_.path());
  const ProgramResult trained = train("evaluation.every=10");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const PythonResult result = check("0.7.0");
  EXPECT_NE(result.status, 0);
  const std::string failed = "Failed checks for eval_accuracy : v['value'] >= 0.2500";
  EXPECT_NE(result.errors.find(failed), std::string::npos) << result.errors;
  for (const char* other : {"CHECK for", "Required", "executing"}) {
    EXPECT_EQ(result.errors.find(other), std::string::npos) << result.errors;
  }
}

}  // namespace
}  // namespace lockstep
