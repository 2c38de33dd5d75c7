// Shares of a step (batch.shares), on a task whose points take as long as a rank's machine is said
// to need: it sleeps, so that the tests measure the division and not this machine.
#include <gtest/gtest.h>

#include "base/file.h"
#include "support/program.h"

namespace lockstep {
namespace {

using nlohmann::json;

class SharesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(config(),
               "[task]\nname = \"line\"\n[points]\nbatch = 56\ntrain = 560\n[optimizer]\n"
               "name = \"sgd\"\nlr = 0.2\nmomentum = 0.9\n[schedule]\nname = \"fixed\"\n"
               "[training]\nsteps = 32\nprogress_every = 10\n[evaluation]\nevery = 0\n"
               "[checkpoint]\nevery = 8\nkeep = 9\n[run]\nprecision = \"fp32\"\n");
  }
  fs::path config() const { return folder_.path() / "line.toml"; }
  fs::path run(const std::string& name) const { return folder_.path() / name; }
  ProgramResult train(const std::string& name, int ranks, const std::string& words = "") const {
    return run_program(LOCKSTEP_OWN_TASK,
                       fmt::format("launch -n {} -- train {} run.folder={} {}", ranks,
                                   config().string(), run(name).string(), words),
                       "OMP_NUM_THREADS=1");
  }
  std::vector<json> decisions(const std::string& name) const {
    std::vector<json> out;
    for (const std::string& line : read_lines(run(name) / "shares.jsonl")) {
      out.push_back(json::parse(line));
    }
    return out;
  }
  std::vector<double> losses(const std::string& name) const {
    std::vector<double> out;
    for (const json& step : metrics_of(run(name), "step")) {
      const std::size_t number = step.at("step").get<std::size_t>();
      out.resize(number);
      out[number - 1] = step.at("train/loss").get<double>();
    }
    return out;
  }
  // Makes a run that is as `whole` was when it was killed before it wrote the checkpoint after
  // `step`: all later ones are gone.
  void cut(const std::string& whole, const std::string& cut, int step) const {
    fs::copy(run(whole), run(cut), fs::copy_options::recursive);
    for (int later = step + 8; later <= 32; later += 8) {
      fs::remove_all(run(cut) / "checkpoints" / fmt::format("step_{}", later));
    }
  }

  TemporaryFolder folder_;
};

// The steps of a rank that is two or four times as slow as the first take as long as its own.
const char* const kSpeeds = "points.milliseconds=[2,4,8] ";

TEST_F(SharesTest, FollowTheSpeedsAndAResumedRunRepeatsThem) {
  const std::string words = std::string(kSpeeds) + "batch.shares=speed";
  const ProgramResult whole = train("whole", 3, words);
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  const std::vector<json> decided = decisions("whole");
  ASSERT_GE(decided.size(), 2u) << whole.errors;
  EXPECT_EQ(decided[0].at("weights"), json({1000, 1000, 1000}));
  // 57, 29 and 14 % end together; sleeping is never shorter, and a little longer on a busy machine.
  const json& first = decided[1];
  EXPECT_EQ(first.at("from_step"), 18) << first << "\n" << whole.errors;
  const double all = 3000;
  EXPECT_NEAR(first.at("weights").at(0).get<double>() / all, 4 / 7.0, 0.06) << first;
  EXPECT_NEAR(first.at("weights").at(2).get<double>() / all, 1 / 7.0, 0.03) << first;
  EXPECT_NE(whole.errors.find("shares from step 18 on: "), std::string::npos) << whole.errors;

  const ProgramResult equal = train("equal", 3);
  ASSERT_EQ(equal.exit_code, 0) << equal.errors;
  EXPECT_FALSE(fs::exists(run("equal") / "shares.jsonl")) << "nothing was decided";
  const std::vector<double> of_whole = losses("whole"), of_equal = losses("equal");
  ASSERT_EQ(of_whole.size(), 32u);
  ASSERT_EQ(of_equal.size(), 32u);
  for (std::size_t step = 0; step < 32; ++step) {
    EXPECT_NEAR(of_whole[step], of_equal[step], 1e-5 * of_equal[step] + 1e-9) << step;
  }

  // Killed between a decision and the batch from which on it holds, before the decision, and after.
  for (const int step : {8, 16, 24}) {
    const std::string name = fmt::format("from_{}", step);
    cut("whole", name, step);
    const ProgramResult rest = train(name, 3, words + " --resume");
    ASSERT_EQ(rest.exit_code, 0) << rest.errors;
    EXPECT_NE(rest.errors.find(fmt::format("step_{}", step)), std::string::npos) << rest.errors;
    // A machine under load may give reasons for one more decision: from there on they differ.
    const std::vector<json> repeated = decisions(name);
    std::size_t same = 32;
    if (repeated != decided) {
      ASSERT_NE(repeated.size(), decided.size()) << rest.errors;
      const std::size_t more = std::max(repeated.size(), decided.size()) - 1;
      const json& differs = (repeated.size() > more ? repeated : decided)[more];
      same = std::min<std::size_t>(32, differs.at("from_step").get<std::size_t>() - 1);
    }
    const std::vector<double> again = losses(name);
    ASSERT_EQ(again.size(), 32u);
    for (std::size_t i = 0; i < same; ++i) EXPECT_EQ(again[i], of_whole[i]) << step << " " << i;
  }

  // Of other ranks nothing is taken over.
  cut("whole", "two", 24);
  const ProgramResult two = train("two", 2, words + " --resume");
  ASSERT_EQ(two.exit_code, 0) << two.errors;
  const json last = decisions("two").back();
  EXPECT_EQ(last.at("from_step"), 25);
  EXPECT_EQ(last.at("weights"), json({1000, 1000}));
}

TEST_F(SharesTest, AListIsTaken) {
  const ProgramResult listed = train("listed", 3, "batch.shares=4:2:1 training.steps=8");
  ASSERT_EQ(listed.exit_code, 0) << listed.errors;
  EXPECT_NE(listed.errors.find("shares of a step: 57.1 %, 28.6 % and 14.3 %"), std::string::npos)
      << listed.errors;
  const ProgramResult two = train("two", 2, "batch.shares=4:2:1");
  EXPECT_EQ(two.exit_code, 2);
  EXPECT_NE(two.errors.find("batch.shares: 3 numbers, but there are 2 ranks"), std::string::npos)
      << two.errors;
  const ProgramResult none = train("none", 2, "batch.shares=1000:1");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.errors.find("batch.shares = 1000:1: rank 1 on "), std::string::npos)
      << none.errors;
  EXPECT_NE(none.errors.find("steps of 1,000 items or more"), std::string::npos) << none.errors;
}

TEST_F(SharesTest, ARankWithoutMemoryGetsSmallerMicroBatchesAndTheRunGoesOn) {
  const ProgramResult enough = train("enough", 2);
  ASSERT_EQ(enough.exit_code, 0) << enough.errors;
  const ProgramResult little = train("little", 2, "points.room=[0,10]");
  ASSERT_EQ(little.exit_code, 0) << little.errors;
  EXPECT_NE(little.errors.find("ran out of memory"), std::string::npos) << little.errors;
  const std::vector<json> decided = decisions("little");
  ASSERT_EQ(decided.size(), 2u);  // in 2 were still 14 points at a time
  EXPECT_EQ(decided[1].at("micro_batches"), json({1, 4}));
  EXPECT_EQ(decided[1].at("from_step"), 1);
  const std::vector<double> with = losses("enough"), without = losses("little");
  ASSERT_EQ(without.size(), 32u);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_NEAR(with[i], without[i], 1e-5 * with[i] + 1e-9);

  const ProgramResult none = train("none", 2, "points.room=[0,0.5]");
  EXPECT_EQ(none.exit_code, 4);
  EXPECT_NE(none.errors.find("has not the memory for one example"), std::string::npos)
      << none.errors;
}

}  // namespace
}  // namespace lockstep
