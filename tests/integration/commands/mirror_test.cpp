// A run whose machine is lost with all that was on it goes on elsewhere from its second home.
#include <gtest/gtest.h>

#include "support/expect_says.h"
#include "support/s3_environment.h"
#include "support/tiny_runs.h"

namespace lockstep {
namespace {

class SecondHomeRuns : public TinyRuns {
 protected:
  std::map<int64_t, std::string> losses(const std::string& name) const {
    std::map<int64_t, std::string> out;
    for (const auto& line : metrics_of(run(name), "step")) {
      out[line.at("step")] = line.at("train/loss").dump();
    }
    return out;
  }
};

TEST_F(SecondHomeRuns, ALostRunGoesOnElsewhereBitForBit) {
  fs::create_directories(run("s3") / "bucket");
  S3Environment s3(run("s3"));
  s3.set("XDG_CACHE_HOME", run("cache").string());
  const std::string words =
      "training.steps=20 checkpoint.every=5 checkpoint.mirror=s3://bucket/nmt";
  ASSERT_EQ(train("whole", 2, "training.steps=20").exit_code, 0);
  const ProgramResult half = train("half", 2, words + " training.steps=10");
  ASSERT_EQ(half.exit_code, 0) << half.errors;
  EXPECT_NE(half.errors.find("has everything, as far as step_10"), std::string::npos)
      << half.errors;
  fs::remove_all(run("half"));  // the machine is gone
  // Another run does not get in its way, and a batch script's --resume=auto goes on with it.
  const ProgramResult other = train("other", 1, words);
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.errors.find("holds another run"), std::string::npos) << other.errors;
  const ProgramResult there = train("there", 2, words + " --resume=auto");
  ASSERT_EQ(there.exit_code, 0) << there.errors;
  EXPECT_EQ(losses("there"), losses("whole"));
  EXPECT_EQ(read_file(run("there") / "checkpoints/step_20/weights.safetensors"),
            read_file(run("whole") / "checkpoints/step_20/weights.safetensors"));
  // A machine that has nothing uses the model.
  const ProgramResult used = run_lockstep("evaluate s3://bucket/nmt --limit 4");
  EXPECT_EQ(used.exit_code, 0) << used.errors;
  const ProgramResult fetched =
      run_lockstep(fmt::format("fetch s3://bucket/nmt --to {}", run("back").string()));
  ASSERT_EQ(fetched.exit_code, 0) << fetched.errors;
  EXPECT_EQ(losses("back"), losses("whole"));
  // No configuration but the run's; it has taken all its steps.
  const ProgramResult more = run_lockstep(fmt::format(
      "train --resume s3://bucket/nmt run.folder={} training.steps=22", run("more").string()));
  ASSERT_EQ(more.exit_code, 0) << more.errors;
  EXPECT_EQ(losses("more").size(), 22u);
}

}  // namespace
}  // namespace lockstep
