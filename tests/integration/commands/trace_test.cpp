// Timelines of real runs: of one that ended, and of one that is under way.
#include <gtest/gtest.h>

#include "support/background.h"
#include "support/tiny_runs.h"
#include "support/trace_rules.h"

namespace lockstep {
namespace {

using nlohmann::json;

class TraceCommand : public TinyRuns {
 protected:
  json timeline_of(const std::string& name) const {
    const json file = json::parse(read_file(run(name) / "trace" / "timeline.json"));
    EXPECT_EQ(TraceRules::broken(file), "");
    return file.at("traceEvents");
  }
  static int count(const json& events, const std::string& name, int process = -1) {
    int out = 0;
    for (const json& e : events) {
      out += e["name"] == name && e["ph"] == "X" && (process < 0 || e["pid"] == process) ? 1 : 0;
    }
    return out;
  }
};

TEST_F(TraceCommand, ShowsEveryRankOfARunThatEnded) {
  ASSERT_EQ(train("ended", 2, "training.steps=30 trace.first=11 trace.steps=5").exit_code, 0);
  const ProgramResult traced = run_lockstep("trace " + run("ended").string());
  ASSERT_EQ(traced.exit_code, 0) << traced.errors;
  EXPECT_NE(traced.output.find("Steps 11 to 15 are exact"), std::string::npos) << traced.output;
  const json events = timeline_of("ended");
  for (int process : {2, 3}) {
    EXPECT_EQ(count(events, "step 10", process), 1);
    EXPECT_EQ(count(events, "step 12", process), 0) << "its spans show it";
    // Steps beside those with spans may have no room for all of their phases.
    EXPECT_GE(count(events, "forward", process), 28);
    EXPECT_GE(count(events, "optimizer", process), 28);
    EXPECT_GE(count(events, "gradient bucket 0", process), 5);
  }
  const ProgramResult report = run_lockstep("report " + run("ended").string());
  ASSERT_EQ(report.exit_code, 0) << report.errors;
  EXPECT_NE(read_file(run("ended") / "report" / "report.html").find("Timeline of step"),
            std::string::npos);
}

TEST_F(TraceCommand, RecordsTheNextStepsOfARunThatTrains) {
  const fs::path folder = run("live"), output = folder_->path() / "live.out";
  Background job(fmt::format("launch -n 2 -- train {}/tiny.toml run.folder={} "
                             "training.steps=100000000 trace.steps=0",
                             folder_->path().string(), folder.string()),
                 output);
  ASSERT_TRUE(wait_for_steps(folder).is_object()) << read_file(output);
  EXPECT_FALSE(fs::exists(folder / "trace"));
  const ProgramResult traced = run_lockstep("trace --live 3 " + folder.string());
  ASSERT_EQ(traced.exit_code, 0) << traced.errors;
  EXPECT_NE(traced.errors.find("recorded steps "), std::string::npos) << traced.errors;
  EXPECT_FALSE(fs::exists(folder / "trace" / "request.json"));
  const json events = timeline_of("live");
  for (int process : {2, 3}) EXPECT_EQ(count(events, "optimizer", process), 3);
  // And again, of later steps.
  ASSERT_EQ(run_lockstep("trace --live 2 " + folder.string()).exit_code, 0);
  EXPECT_EQ(count(timeline_of("live"), "optimizer", 2), 2);
}

TEST_F(TraceCommand, SaysThatALiveRunGaveNothing) {
  ASSERT_EQ(train("over", 1, "training.steps=2").exit_code, 0);
  const ProgramResult traced = run_lockstep("trace --live 3 " + run("over").string());
  EXPECT_EQ(traced.exit_code, 2);
  EXPECT_NE(traced.errors.find("does not train now"), std::string::npos) << traced.errors;
  EXPECT_FALSE(fs::exists(run("over") / "trace" / "request.json"));
}

}  // namespace
}  // namespace lockstep
