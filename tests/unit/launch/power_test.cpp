// When a machine is switched off, and when it would be a loss.
#include <gtest/gtest.h>

#include "base/file.h"
#include "launch/ending/power_watch.h"
#include "launch/ending/run_copies.h"
#include "launch/job/power_round.h"

namespace lockstep {
namespace {

const PowerOrder kOrder{.command = "default", .after_seconds = 900};

TEST(PowerDecision, WaitsForTheLauncherAndForOtherJobs) {
  PowerFacts facts{.now = 10000, .heard = 9200};
  EXPECT_EQ(decide_power(kOrder, facts), PowerDecision::kWait);
  facts.heard = 9100;
  EXPECT_EQ(decide_power(kOrder, facts), PowerDecision::kOff);
  facts.agents_live = true;
  EXPECT_EQ(decide_power(kOrder, facts), PowerDecision::kWait);
  facts = {.now = 10000, .heard = 9000, .copied = false};
  EXPECT_EQ(decide_power(kOrder, facts), PowerDecision::kRefuse);
  EXPECT_EQ(decide_power({}, {.now = 10000}), PowerDecision::kWait) << "without a command";
}

TEST(PowerDecision, ObeysTheLauncherAtItsTime) {
  PowerFacts facts{.now = 100, .heard = 99, .due = 101, .copied = false};
  EXPECT_EQ(decide_power(kOrder, facts), PowerDecision::kWait);
  facts.now = 101;
  EXPECT_EQ(decide_power(kOrder, facts), PowerDecision::kOff);
  facts.agents_live = true;
  EXPECT_EQ(decide_power(kOrder, facts), PowerDecision::kWait);
}

TEST(RunCopies, AreThoseOfTheRunFolder) {
  const TemporaryFolder folder;
  EXPECT_TRUE(is_mirrored(look_at_copies(folder.path()))) << "nothing to lose";
  for (const char* step : {"step_90", "step_100", "step_200.part"}) {
    fs::create_directories(folder.path() / "checkpoints" / step);
  }
  write_file(folder.path() / "checkpoints/step_90/DONE", "{}");
  write_file(folder.path() / "checkpoints/step_100/DONE", "{\"a\":1}");
  RunCopies has = look_at_copies(folder.path());
  EXPECT_EQ(has.newest, "step_100");
  EXPECT_FALSE(is_mirrored(has));
  write_file(folder.path() / "mirror.json",
             R"({"address":"s3://x","newest":"step_90","complete":false,"error":"full"})");
  has = look_at_copies(folder.path());
  EXPECT_FALSE(is_mirrored(has));
  EXPECT_EQ(has.error, "full");
  write_file(folder.path() / "mirror.json",
             R"({"address":"s3://x","newest":"step_100","complete":true,"error":""})");
  has = run_copies_of(to_text(look_at_copies(folder.path())));
  EXPECT_TRUE(is_mirrored(has));
  EXPECT_TRUE(has.complete);
  write_file(folder.path() / "mirror.json", "nonsense");
  EXPECT_FALSE(is_mirrored(look_at_copies(folder.path())));
}

TEST(PowerRound, SwitchesOffWhatIsElsewhere) {
  const RunCopies newest{.newest = "step_900", .digest = "d"}, older{.newest = "step_800"};
  const EndingOptions options;
  EXPECT_EQ(why_not_off(options, {{"a", newest}, {"b", older}}, {}), "step_900 is on a alone");
  EXPECT_EQ(why_not_off(options, {{"a", {}}, {"b", {}}}, {}), "") << "nothing was saved";
  EXPECT_EQ(why_not_off(options, {{"a", newest}}, newest), "") << "fetched";
  EXPECT_NE(why_not_off(options, {{"a", newest}}, {.newest = "step_900", .digest = "e"}), "")
      << "another one of that name is here";
  RunCopies mirrored = newest;
  mirrored.has_mirror = true;
  mirrored.mirrored = "step_800";
  EXPECT_TRUE(is_being_mirrored({{"a", mirrored}}));
  EXPECT_NE(why_not_off(options, {{"a", mirrored}}, {}), "");
  mirrored.error = "no rights";
  EXPECT_FALSE(is_being_mirrored({{"a", mirrored}}));
  EXPECT_EQ(why_not_off(options, {{"a", mirrored}}, {}),
            "step_900 is on a alone; the mirror failed: no rights");
  mirrored.mirrored = "step_900";
  EXPECT_EQ(why_not_off(options, {{"a", mirrored}, {"b", newest}}, {}), "");
  EndingOptions anyway;
  anyway.power.anyway = true;
  EXPECT_EQ(why_not_off(anyway, {{"a", newest}}, {}), "");
}

TEST(PowerRound, AsksOrdersAndEndsAlsoWhenAHostIsLost) {
  std::vector<std::string> sent;
  EndingOptions options;
  options.run = "~/work/run";
  PowerRound round(options, {{.host = 0, .name = "a"}, {.host = 1, .name = "b", .stays = true}},
                   true, [&](int host, char kind, const std::string& payload) {
                     sent.push_back(std::to_string(host) + kind + payload);
                   });
  const Clock::time_point now{};
  round.begin(now);
  EXPECT_EQ(sent, (std::vector<std::string>{"0c~/work/run", "1c~/work/run"}));
  sent.clear();
  round.answered(0, kCopies, to_text(RunCopies{}), now);
  EXPECT_TRUE(sent.empty());
  round.answered(1, kCopies, to_text(RunCopies{}), now);
  EXPECT_EQ(sent, (std::vector<std::string>{"0q1000", "1n"}));
  EXPECT_EQ(round.says(), "switched off: a");
  round.answered(0, kDone, "", now);
  EXPECT_FALSE(round.over());
  round.lost(1, now);
  EXPECT_TRUE(round.over());
}

TEST(PowerRound, WaitsForTheMirrorButNotForEver) {
  std::vector<char> sent;
  EndingOptions options;
  options.run = "run";
  PowerRound round(options, {{.host = 0, .name = "a"}}, true,
                   [&](int, char kind, const std::string&) { sent.push_back(kind); });
  RunCopies behind{.newest = "step_9", .digest = "d", .has_mirror = true, .mirrored = "step_8"};
  Clock::time_point now{};
  round.begin(now);
  while (sent.back() == kAskCopies && now < Clock::time_point(std::chrono::hours(1))) {
    round.answered(0, kCopies, to_text(behind), now);
    now += std::chrono::seconds(1);
    round.check_time(now);
  }
  EXPECT_GT(now, Clock::time_point(std::chrono::seconds(60)));
  EXPECT_EQ(sent.back(), kStandDown);
  EXPECT_EQ(round.says(), "the hosts are not switched off: step_9 is on a alone");
}

}  // namespace
}  // namespace lockstep
