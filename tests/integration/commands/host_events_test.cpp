// Real runs and what they record of their hosts: metrics.jsonl, TensorBoard, live.json, report.
#include <gtest/gtest.h>

#include <set>

#include "support/event_reader.h"
#include "support/tiny_runs.h"

namespace lockstep {
namespace {

using nlohmann::json;

class HostEventsTest : public TinyRuns {
 protected:
  // Two ranks for about three seconds.
  ProgramResult train_for_seconds(const std::string& name, const std::string& environment,
                                  const std::string& words = "monitor.every_seconds=1") {
    return train(name, 2, "training.steps=1000000 training.minutes=0.055 " + words,
                 "OMP_NUM_THREADS=1 " + environment);
  }

  std::set<std::string> tags(const std::string& name) const {
    std::set<std::string> out;
    for (const auto& entry : fs::directory_iterator(run(name) / "events")) {
      for (const ScalarEvent& event : read_event_file(entry.path()).scalars) out.insert(event.tag);
    }
    return out;
  }

  json answer(const std::string& name, const std::string& id) const {
    const ProgramResult said = run_lockstep("report --json " + run(name).string());
    EXPECT_EQ(said.exit_code, 0) << said.errors;
    const json report = json::parse(said.output);
    for (const json& one : report["answers"]) {
      if (one["id"] == id) return one["facts"];
    }
    return nullptr;
  }
};

TEST_F(HostEventsTest, AreInMetricsTensorBoardAndTheReport) {
  const ProgramResult done =
      train_for_seconds("two", fmt::format("LOCKSTEP_NVML='{}'", LOCKSTEP_FAKE_NVML));
  ASSERT_EQ(done.exit_code, 0) << done.errors;
  const std::vector<json> lines = metrics_of(run("two"), "host");
  ASSERT_GE(lines.size(), 2u);
  double cores = 0, seconds = 0;
  std::set<int> ranks;
  for (const json& line : lines) {
    EXPECT_GE(line["cpu_share"], 0);
    EXPECT_LE(line["cpu_share"], 1);
    EXPECT_GT(line["memory_available_bytes"], 0);
    EXPECT_GT(line["memory_bytes"], line["memory_available_bytes"]);
    EXPECT_EQ(line["cpu_core_percent"].size(), line["cpu_cores"].get<std::size_t>());
    EXPECT_EQ(line["interface"], "lo");
    EXPECT_LT(line["sampler_share"], 0.05);
    ASSERT_EQ(line["gpus"].size(), 2u);
    EXPECT_NEAR(line["gpus"][0]["use"], 0.87, 1e-3);
    for (const json& rank : line["ranks"]) {
      cores += rank["cores"].get<double>();
      ranks.insert(rank["rank"].get<int>());
      EXPECT_GT(rank["memory_bytes"], 1 << 20);
    }
    seconds += line["seconds"].get<double>();
  }
  EXPECT_EQ(ranks, (std::set<int>{0, 1}));
  EXPECT_GT(cores, 0.1);
  EXPECT_GT(seconds, 1.5);
  EXPECT_GT(lines.back()["step"], 0);
  EXPECT_EQ(json::parse(read_lines(run("two") / "metrics.jsonl").back())["event"], "end");

  const std::string host = "host/" + lines[0]["host"].get<std::string>() + "/";
  const std::set<std::string> found = tags("two");
  for (const char* tag : {"cpu_share", "memory_used_bytes", "in_bytes_per_second",
                          "drops_per_second", "disk_read_bytes_per_second", "gpu0/use",
                          "gpu1/watts", "gpu0/temperature", "rank1/cores", "rank0/memory_bytes"}) {
    EXPECT_TRUE(found.contains(host + tag)) << host << tag;
  }

  const json live = json::parse(read_file(run("two") / "live.json"));
  EXPECT_EQ(live["ranks"][0]["gpus"].size(), 2u);
  EXPECT_FALSE(live["ranks"][1].contains("gpus"));
  const ProgramResult shown = run_lockstep("watch --once " + run("two").string());
  EXPECT_NE(shown.output.find("gpu 0 87% 12.0/16.0 GB 62 W 64 C; gpu 1 0%"), std::string::npos)
      << shown.output;

  const json processors = answer("two", "processors");
  EXPECT_EQ(processors["use_of_hosts"].size(), 1u);
  EXPECT_EQ(processors["use_of_gpus"].size(), 2u);
  EXPECT_EQ(processors["use_of_ranks"].size(), 2u);
  const json cost = answer("two", "cost");
  EXPECT_EQ(cost["energy_source"], "measured");
  EXPECT_GT(cost["energy_gpus_kwh"], 0);
}

TEST_F(HostEventsTest, WithoutGpusThereAreNoFieldsAndNoWarnings) {
  const ProgramResult done = train_for_seconds("plain", "LOCKSTEP_NVML=libno-such-library.so.1");
  ASSERT_EQ(done.exit_code, 0) << done.errors;
  EXPECT_EQ(done.errors.find("warning"), std::string::npos) << done.errors;
  const std::vector<json> lines = metrics_of(run("plain"), "host");
  ASSERT_FALSE(lines.empty());
  EXPECT_FALSE(lines[0].contains("gpus"));
  for (const std::string& tag : tags("plain")) {
    EXPECT_EQ(tag.find("gpu"), std::string::npos) << tag;
  }
  const ProgramResult compared = run_lockstep("compare " + run("plain").string());
  EXPECT_EQ(compared.exit_code, 0) << compared.errors;
}

TEST_F(HostEventsTest, CanBeTurnedOff) {
  ASSERT_EQ(train("off", 1, "monitor.every_seconds=0").exit_code, 0);
  EXPECT_TRUE(metrics_of(run("off"), "host").empty());
  const ProgramResult wrong =
      run_lockstep("train " + (folder_->path() / "tiny.toml").string() +
                   " monitor.every_second=5 run.folder=" + run("wrong").string());
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.errors.find("did you mean monitor.every_seconds?"), std::string::npos)
      << wrong.errors;
}

}  // namespace
}  // namespace lockstep
