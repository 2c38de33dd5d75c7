// Run folders of earlier releases, kept in tests/samples, are read by this one: shown, verified,
// evaluated, reported and gone on from. (A later format is refused:
// tests/cli/train/checkpoint.test.)
#include <gtest/gtest.h>

#include "support/program.h"

namespace lockstep {
namespace {

class OlderRuns : public ::testing::Test {
 protected:
  static std::vector<fs::path> samples() {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(fs::path(LOCKSTEP_SOURCE) / "tests/samples")) {
      if (entry.is_directory()) out.push_back(entry.path());
    }
    return out;
  }
  ProgramResult program(const std::string& words) const {
    return run_program(LOCKSTEP_OWN_TASK, words, "OMP_NUM_THREADS=1");
  }
  double loss_after(const fs::path& run, int step) const {
    for (const auto& event : metrics_of(run, "evaluation")) {
      if (event.at("step") == step) return event.at("eval/loss");
    }
    return -1;
  }
  TemporaryFolder folder_;
};

TEST_F(OlderRuns, AreShownAndGoneOnFromAsIfTheyWereOurs) {
  ASSERT_FALSE(samples().empty());
  for (const fs::path& sample : samples()) {
    const fs::path run = folder_.path() / sample.filename(), whole = folder_.path() / "whole";
    fs::copy(sample, run, fs::copy_options::recursive);
    for (const char* look :
         {"checkpoint verify", "checkpoint show", "evaluate", "report", "compare"}) {
      const ProgramResult looked = program(fmt::format("{} {}", look, run.string()));
      EXPECT_EQ(looked.exit_code, 0) << sample << ": " << look << ": " << looked.errors;
    }
    const std::string config = (run / "config.toml").string();
    const std::string words = "training.steps=16 evaluation.every=8";
    const ProgramResult rest = program(fmt::format(
        "launch -n 2 -- train {} run.folder={} {} --resume", config, run.string(), words));
    ASSERT_EQ(rest.exit_code, 0) << sample << rest.errors;
    EXPECT_NE(rest.errors.find("resumed from"), std::string::npos) << rest.errors;
    EXPECT_EQ(metrics_of(run, "step").size(), 16u);
    ASSERT_EQ(program(fmt::format("launch -n 2 -- train {} run.folder={} {}", config,
                                  whole.string(), words))
                  .exit_code,
              0);
    EXPECT_NEAR(loss_after(run, 16), loss_after(whole, 16), 1e-5);
    fs::remove_all(whole);
  }
}

}  // namespace
}  // namespace lockstep
