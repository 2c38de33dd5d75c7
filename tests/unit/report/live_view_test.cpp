#include "report/live/live_view.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "support/expect_error.h"

namespace lockstep {
namespace {

nlohmann::json rank(int number, const std::string& state) {
  return {{"rank", number},
          {"host", "node" + std::to_string(number / 2)},
          {"state", state},
          {"seen_seconds", state == "silent" ? 3.2 : 0.1},
          {"step", 1234},
          {"phase", "backward"},
          {"compute_seconds", 0.7},
          {"wait_seconds", 0.29},
          {"data_seconds", 0.01},
          {"targets_per_second", 12345},
          {"usage",
           {{"cores", 1.96},
            {"machine_cores", 2},
            {"memory_bytes", 1.26e9},
            {"in_bytes_per_second", 12.1e6},
            {"out_bytes_per_second", 62.5e6},
            {"link_bytes_per_second", 125e6}}}};
}

nlohmann::json example() {
  nlohmann::json live = {{"time", 1000}, {"started", 940}, {"state", "running"}, {"reason", ""}};
  live["step"] = 1234;
  live["total_steps"] = 50000;
  live["loss"] = 4.2134;
  live["learning_rate"] = 1.41e-4;
  live["targets_per_second"] = 24100;
  live["unit"] = "tok";
  live["eta_seconds"] = 3725;
  live["slowest"] = {{"rank", 3}, {"factor", 1.31}, {"guess", "its machine computes more slowly"}};
  live["ranks"] = {rank(0, "ok"), rank(1, "ok"), rank(2, "silent"), rank(3, "ok")};
  return live;
}

std::string table(const nlohmann::json& live, const LiveViewOptions& options) {
  return live_table(live, options);
}

TEST(LiveView, ShowsGpusBelowTheRankThatSamplesThem) {
  nlohmann::json live = example();
  live["ranks"][2]["gpus"] = {{{"name", "x"},
                               {"use", 0.87},
                               {"memory_used_bytes", 12e9},
                               {"memory_bytes", 16e9},
                               {"watts", 61.5},
                               {"temperature", 64}},
                              {{"name", "x"}, {"use", 0}}};
  const std::string text = table(live, {.run = "r", .now = 1001});
  const std::size_t gpus = text.find("     gpu 0 87% 12.0/16.0 GB 62 W 64 C; gpu 1 0%\n");
  ASSERT_NE(gpus, std::string::npos) << text;
  EXPECT_LT(text.find("silent 3 s"), gpus);
  EXPECT_GT(text.find("1.31x slow"), gpus);
}

TEST(LiveView, ShowsEveryRankInAHundredColumns) {
  std::string text = table(example(), {.run = "runs/nmt", .now = 1001});
  for (const std::string& line : split(text, '\n')) EXPECT_LE(line.size(), 100u) << line;
  for (const char* part :
       {"runs/nmt  step 1,234/50,000 (2.5%)", "loss 4.213", "lr 1.41e-04", "24.1k tok/s",
        "eta 1 h 02 m", "12.3k  70%  29%   1%", "2.0/2", "1.3 GB", "12.1M 62.5M  50%", "1.31x slow",
        "silent 3 s", "slowest: rank 3, 1.31 times as slow as the others"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  }
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(table(example(), {.run = "r", .now = 1001, .color = true}).find('\x1b'),
            std::string::npos);
}

TEST(LiveView, SaysWhenThereIsNoNewsAndHowARunEnded) {
  nlohmann::json live = example();
  EXPECT_NE(table(live, {.run = "r", .now = 1042}).find("no news for 42 s"), std::string::npos);
  live["state"] = "failed";
  live["reason"] = "lost rank 2 on node1";
  EXPECT_NE(table(live, {.run = "r", .now = 5000}).find("failed after 1 m 00 s: lost rank 2 on"),
            std::string::npos);
  live["state"] = "ended";
  live["reason"] = "steps";
  std::string text = table(live, {.run = "r", .now = 5000});
  EXPECT_NE(text.find("ended (steps) after 1 m 00 s"), std::string::npos) << text;
  EXPECT_EQ(text.find("no news"), std::string::npos);
}

TEST(LiveView, ShowsOnlyTheRanksAskedFor) {
  std::string text = table(example(), {.run = "r", .now = 1001, .ranks = RankFilter("0,2-3")});
  EXPECT_NE(text.find("\n   0 node0"), std::string::npos) << text;
  EXPECT_EQ(text.find("\n   1 node0"), std::string::npos) << text;
  EXPECT_NE(text.find("\n   3 node1"), std::string::npos) << text;
}

TEST(LiveView, WhatIsNoRunIsSaidSo) {
  TemporaryFolder folder;
  EXPECT_ERROR(read_live(folder.path()), DataError, "holds no run");
  write_file(folder.path() / "config.toml", "");
  EXPECT_ERROR(read_live(folder.path()), DataError, "nothing to watch yet");
  write_file(folder.path() / "live.json", "{\"ranks\": 3}");
  EXPECT_ERROR(read_live(folder.path()), DataError, "is no state of a run");
}

TEST(LiveView, SurvivesMissingAndOddFigures) {
  nlohmann::json live = {{"ranks", {{{"rank", 0}}, {{"usage", {{"cores", nullptr}}}}}}};
  EXPECT_NE(table(live, {.run = "r"}), "");
}

TEST(RankFilter, RefusesWhatIsNoListOfRanks) {
  EXPECT_TRUE(RankFilter().has(7));
  EXPECT_TRUE(RankFilter("1,3-5").has(4));
  EXPECT_FALSE(RankFilter("1,3-5").has(2));
  for (const char* bad : {"", "a", "1-", "3-2", "-1", "1,,2"}) {
    EXPECT_ERROR(RankFilter{bad}, ConfigError, "expected ranks as 0,2-3");
  }
}

}  // namespace
}  // namespace lockstep
