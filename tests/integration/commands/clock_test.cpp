// Clocks that jump while a run goes on change nothing of it (tests/support/unsteady_machine.cpp).
#include <gtest/gtest.h>

#include "support/program.h"

namespace lockstep {
namespace {

class JumpingClocks : public ::testing::Test {
 protected:
  JumpingClocks() {
    write_file(folder_.path() / "line.toml",
               "[task]\nname = \"line\"\n[points]\nbatch = 12\nstep_seconds = 0.01\n[optimizer]\n"
               "name = \"adam\"\nlr = 0.1\n[schedule]\nname = \"fixed\"\n[training]\nsteps = 300\n"
               "[evaluation]\nevery = 100\n[checkpoint]\nevery = 50\n[run]\nprecision = \"fp32\"\n"
               "[monitor]\nevery_seconds = 1\n");
  }
  ProgramResult train(const std::string& name, const std::string& before) const {
    return run_program(LOCKSTEP_OWN_TASK,
                       fmt::format("launch -n 2 --restarts 1 -- train {} run.folder={}",
                                   (folder_.path() / "line.toml").string(), run(name).string()),
                       "OMP_NUM_THREADS=1 " + before);
  }
  fs::path run(const std::string& name) const { return folder_.path() / name; }
  std::string weights(const std::string& name) const {
    return read_file(run(name) / "checkpoints" / "step_300" / "weights.safetensors");
  }
  TemporaryFolder folder_;
};

TEST_F(JumpingClocks, ChangeNothingOfARun) {
  ASSERT_EQ(train("steady", "").exit_code, 0);
  for (const char* jumps : {"0:86400,1:-86400,launcher:3600", "0:-3600,launcher:-86400"}) {
    const ProgramResult jumped = train(
        "jumped",
        fmt::format("LD_PRELOAD={} LOCKSTEP_CLOCK_JUMPS={}", LOCKSTEP_UNSTEADY_MACHINE, jumps));
    ASSERT_EQ(jumped.exit_code, 0) << jumps << jumped.errors;
    EXPECT_EQ(weights("jumped"), weights("steady")) << jumps;
    EXPECT_EQ(metrics_of(run("jumped"), "start").size(), 1u) << jumps;
    EXPECT_EQ(metrics_of(run("jumped"), "resume").size(), 0u) << jumps << jumped.errors;
    for (const auto& step : metrics_of(run("jumped"), "step")) {
      EXPECT_GE(step.at("time/step_seconds").get<double>(), 0);
      EXPECT_LT(step.at("time/step_seconds").get<double>(), 60);
    }
    const ProgramResult report = run_program(LOCKSTEP_OWN_TASK, "report " + run("jumped").string());
    EXPECT_EQ(report.exit_code, 0) << jumps << report.errors;
    fs::remove_all(run("jumped"));
  }
}

}  // namespace
}  // namespace lockstep
