#include "launch/ending/notice.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

namespace lockstep {
namespace {

using nlohmann::json;

Notice failure() {
  return {.event = "failure",
          .text = "rank 1 on b was killed by SIGKILL",
          .run = "/data/runs/nmt",
          .host = "b",
          .step = 1200,
          .steps = 50000,
          .metric = "bleu",
          .value = 31.25,
          .hours = 2.05,
          .cost = 2.157,
          .budget = 20,
          .hosts = 2,
          .ranks = 4,
          .exit_code = 4,
          .lines = {"first", "second"}};
}

TEST(Notice, SaysWhatHappenedHowFarItIsAndWhatItCost) {
  EXPECT_EQ(words_of(failure()),
            "/data/runs/nmt: rank 1 on b was killed by SIGKILL\n"
            "step 1,200/50,000, bleu 31.25, 2 hosts, 2 h 03 m, 2.16 of 20.00 spent\n"
            "| first\n| second");
  EXPECT_EQ(words_of({.event = "end", .text = "ended well"}), "ended well\n1 host, 0 s");
}

TEST(Notice, HasFieldsForPrograms) {
  const json fields = json::parse(json_of(failure()));
  EXPECT_EQ(fields["event"], "failure");
  EXPECT_EQ(fields["step"], 1200);
  EXPECT_EQ(fields["total_steps"], 50000);
  EXPECT_EQ(fields["metric"]["name"], "bleu");
  EXPECT_EQ(fields["cost"], 2.157);
  EXPECT_EQ(fields["hosts"], 2);
  EXPECT_EQ(fields["log"], (json{"first", "second"}));
  EXPECT_EQ(fields["text"], words_of(failure()));
  EXPECT_FALSE(json::parse(json_of({.event = "end", .text = ""})).contains("step"));
}

TEST(Notice, GivesEachServiceWhatItTakes) {
  const json slack = json::parse(body_for("https://hooks.slack.com/services/T0/B0/x", failure()));
  EXPECT_EQ(slack.size(), 1u);
  EXPECT_EQ(slack["text"], words_of(failure()));
  Notice longer = failure();
  longer.lines.assign(12, std::string(290, 'x'));
  const json discord = json::parse(body_for("https://discord.com/api/webhooks/1/x", longer));
  EXPECT_EQ(discord.size(), 1u);
  EXPECT_LE(discord["content"].get<std::string>().size(), 2010u);
  const json teams =
      json::parse(body_for("https://x.westeurope.logic.azure.com:443/workflows/1", failure()));
  EXPECT_EQ(teams["attachments"][0]["content"]["body"][0]["text"], words_of(failure()));
  const json mattermost = json::parse(body_for("https://chat.example.org/hooks/x", failure()));
  EXPECT_EQ(mattermost["text"], words_of(failure()));
  EXPECT_EQ(mattermost["event"], "failure");
}

TEST(Notice, BytesThatAreNoTextHarmNothing) {
  Notice odd = failure();
  odd.lines = {"\xff\xfe", std::string(5000, 'y')};
  EXPECT_TRUE(json::accept(json_of(odd)));
}

TEST(NotifyTarget, ShowsTheHostOfAUrlAlone) {
  const NotifyTarget target = notify_target("https://hooks.slack.com/services/SECRET?k=SECRET");
  EXPECT_TRUE(target.is_url);
  EXPECT_EQ(target.shown, "hooks.slack.com");
  EXPECT_EQ(notify_target("cat >/dev/null").shown, "cat");
  const TemporaryFolder folder;
  write_file(folder.path() / "hook", "https://example.org/x\n");
  EXPECT_EQ(notify_target("@" + (folder.path() / "hook").string()).word, "https://example.org/x");
}

TEST(NotifyTarget, RefusesWhatIsNeitherUrlNorCommand) {
  for (const std::string word :
       {"", "http://", "https:///SECRET", "https://exa mple.org/SECRET", "https://[::/SECRET",
        "ftp://example.org/SECRET", "no-such-program-here x", "./absent", "@/no/such/file"}) {
    try {
      notify_target(word);
      ADD_FAILURE() << word;
    } catch (const ConfigError& error) {
      EXPECT_EQ(std::string(error.what()).find("SECRET"), std::string::npos) << error.what();
    }
  }
  EXPECT_NO_THROW(notify_target("X=1 no-such-program-here")) << "the shell's to judge";
}

}  // namespace
}  // namespace lockstep
