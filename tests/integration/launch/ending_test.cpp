// The end of a run (docs/launch.md#the-end-of-a-run): who is told, what follows, what it may cost,
// and hosts that are switched off by a command that stands in for it.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "support/apart_runs.h"
#include "support/expect_says.h"
#include "support/local_server.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

std::vector<json> posts_in(const fs::path& folder) {
  std::vector<json> out;
  for (int i = 0; fs::exists(folder / fmt::format("post_{}.json", i)); ++i) {
    out.push_back(json::parse(read_file(folder / fmt::format("post_{}.json", i))));
  }
  return out;
}

std::vector<std::string> events_of(const std::vector<json>& posts) {
  std::vector<std::string> out;
  for (const json& post : posts) out.push_back(post.at("event"));
  return out;
}

using Words = std::vector<std::string>;

TEST(EndOfARun, IsToldToUrlsAndCommandsWithoutTheirSecrets) {
  const TemporaryFolder folder, posts;
  const LocalServer server(posts.path(), "{}", "webhook_server.py");
  const std::string file = (folder.path() / "told").string();
  const ProgramResult result = run_lockstep(fmt::format(
      "launch -n 2 --notify {0}/good --notify {0}/absent/SECRET --notify "
      "'cat >{1} && echo $LOCKSTEP_EVENT $LOCKSTEP_EXIT_CODE >>{1}' --notify false "
      "--program /bin/sh -- -c 'echo last words; test $LOCKSTEP_RANK = 0 || exit 3; exec sleep 9'",
      server.url(), file));
  EXPECT_EQ(result.exit_code, 3) << result.errors;
  const std::vector<json> told = posts_in(posts.path());
  ASSERT_EQ(events_of(told), (Words{"failure", "end"})) << result.errors;
  EXPECT_EQ(told[0]["exit_code"], 3);
  EXPECT_EQ(told[1]["log"], json{"last words"});
  EXPECT_EQ(told[1]["exit_code"], 3);
  EXPECT_EQ(told[1]["ranks"], 2);
  expect_says(told[1]["text"].get<std::string>(), "ended: rank 1 of 2 exited with code 3");
  const std::vector<std::string> lines = read_lines(file);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(json::parse(lines[0])["event"], "end") << "the last of the two";
  EXPECT_EQ(lines[1], "end 3");
  expect_says(result.errors, "--notify 127.0.0.1: the server answers 404");
  expect_says(result.errors, "--notify false: exit code 1");
  EXPECT_EQ(result.errors.find("SECRET"), std::string::npos) << result.errors;
}

TEST(EndOfARun, AWebhookThatHangsCostsTheRunNothing) {
  const TemporaryFolder folder, posts;
  const LocalServer server(posts.path(), "{}", "webhook_server.py");
  const fs::path out = folder.path() / "out";
  // A signal ends the wait for the last notice, as a person would.
  write_file(folder.path() / "script",
             fmt::format("'{}' launch -n 1 --restarts 1 --output-dir {} --notify {}/hang --program "
                         "/bin/sh -- -c 'exit 4' &\n"
                         "until grep -q '\"event\":\"end\"' {}/launch.jsonl; do sleep 0.05; done\n"
                         "kill -TERM $!\nwait $!\n",
                         LOCKSTEP_PROGRAM, out.string(), server.url(), out.string()));
  const ProgramResult result = run_program("/bin/sh", (folder.path() / "script").string());
  EXPECT_EQ(result.exit_code, 4) << result.errors;
  double first = 0, end = 0;
  for (const std::string& line : read_lines(out / "launch.jsonl")) {
    const json event = json::parse(line);
    if (event["event"] == "start" && first == 0) first = event["time"];
    if (event["event"] == "end") end = event["time"];
  }
  EXPECT_LT(end - first, 8) << "less than one try of the webhook takes";
}

TEST(EndOfARun, ACommandFollowsARunThatEndedWellAlone) {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "out").string();
  ProgramResult result = run_lockstep(
      fmt::format("launch -n 1 --output-dir {} --then 'echo after $LOCKSTEP_RUN; exit 5' --program "
                  "/bin/true",
                  out));
  EXPECT_EQ(result.exit_code, 7) << result.errors;
  EXPECT_EQ(result.output, "after " + out + "\n");
  expect_says(result.errors, "the run ended well, the command of --then did not: exit code 5");
  result = run_lockstep("launch -n 1 --then 'echo after' --program /bin/true");
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(result.output, "after\n");
  result = run_lockstep("launch -n 1 --then 'echo after' --program /bin/false");
  EXPECT_EQ(result.exit_code, 1) << result.errors;
  EXPECT_EQ(result.output, "");
}

TEST(EndOfARun, ComesBeforeTheBudgetIsSpentAndIsTold) {
  const TemporaryFolder folder, posts;
  const LocalServer server(posts.path(), "{}", "webhook_server.py");
  const fs::path out = folder.path() / "out";
  // One a second; 3 s for the launcher and one of grace are kept: the stop begins at 6.
  const ProgramResult result = run_lockstep(
      fmt::format("launch -n 1 --grace 1 --price 3600/h --budget 10 --output-dir {} --notify {}/x "
                  "--program /bin/sh -- -c 'trap \"exit 143\" TERM; while :; do sleep 0.1; done'",
                  out.string(), server.url()));
  EXPECT_EQ(result.exit_code, 6) << result.errors;
  expect_says(result.errors, "stopped before the budget was spent");
  double stop = -1, end = -1;
  for (const std::string& line : read_lines(out / "launch.jsonl")) {
    const json event = json::parse(line);
    if (event["event"] == "budget") stop = event["cost"];
    if (event["event"] == "end") end = event["cost"];
    EXPECT_EQ(event["per_hour"], 3600);
  }
  EXPECT_GE(stop, 6);
  EXPECT_GT(end, stop);
  EXPECT_LT(end, 10);
  RecordProperty("seconds_from_plan_to_stop", std::to_string(stop - 6));
  std::printf("the stop began %.3f s after its time, the end %.3f s\n", stop - 6, end - 6);
  EXPECT_EQ(events_of(posts_in(posts.path())).back(), "end");
  EXPECT_EQ(events_of(posts_in(posts.path())).front(), "budget");
}

class PowerOff : public ApartRuns {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_VIRTUAL_HOSTS();
    ApartRuns::SetUp();
    hosts_ = std::make_unique<HostsApart>();
  }
  bool is_off(const std::string& host) const { return fs::exists(hosts_->file(host, "off")); }
  bool comes(const std::function<bool()>& what, std::chrono::seconds limit = 30s) const {
    const auto until = std::chrono::steady_clock::now() + limit;
    while (!what() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(20ms);
    return what();
  }
  std::string shell_of(const std::string& options, const std::string& program) const {
    return lockstep_here(fmt::format(
        "launch -H a,b --cwd '~/work' --power-off-command 'touch ~/off' {} {}", options, program));
  }
  std::unique_ptr<HostProgram> launch_with(const std::string& options, const std::string& program) {
    return hosts_->start("control", {"/bin/sh", "-c", shell_of(options, program)},
                         {"OMP_NUM_THREADS=1"});
  }
  std::unique_ptr<HostsApart> hosts_;
};

TEST_F(PowerOff, FollowsARunWhoseCheckpointIsElsewhereAndNoOther) {
  bring(*hosts_);
  const std::string train = "-- train tiny.toml run.folder=run training.steps=2";
  auto kept = launch_with("--power-off --then true", train);
  ASSERT_EQ(kept->wait(60s), 0) << kept->output();
  expect_says(kept->output(), "the hosts are not switched off: step_2 is on a, b alone");
  auto fetched = launch_with(
      fmt::format("--power-off --then '{} fetch -H a,b --cwd \"~/work\" run2'", LOCKSTEP_PROGRAM),
      "-- train tiny.toml run.folder=run2 training.steps=2");
  ASSERT_EQ(fetched->wait(60s), 0) << fetched->output();
  expect_says(fetched->output(), "switched off: a, b");
  EXPECT_TRUE(comes([&] { return is_off("a") && is_off("b"); }));
}

TEST_F(PowerOff, ComesByItselfWhenTheLauncherIsLostUnlessAnotherTakesOver) {
  const std::string program = "--program /bin/sh -- -c 'echo runs; exec sleep 60'";
  auto lost = launch_with("--power-off-anyway --power-off-after 0.25", program);  // 15 s
  ASSERT_TRUE(comes([&] { return lost->output().find("[b:1] runs") != std::string::npos; }))
      << lost->output();
  lost->signal(SIGKILL);
  const double killed = unix_seconds();
  auto next = launch_with("--power-off-anyway --power-off-after 60", program);
  ASSERT_TRUE(comes([&] { return next->output().find("[b:1] runs") != std::string::npos; }))
      << next->output();
  ASSERT_TRUE(comes([&] { return unix_seconds() > killed + 17; })) << "past the first one's time";
  EXPECT_FALSE(is_off("a") || is_off("b"));
  next->signal(SIGTERM);
  EXPECT_EQ(next->wait(30s), 143) << next->output();
  EXPECT_NE(hosts_->run_as_user("a", "ls ~/.lockstep/power_off/*.json").first, 0)
      << "who stops a run is there, and may want its hosts";
  auto again = launch_with("--power-off-anyway --power-off-after 0.1", program);
  ASSERT_TRUE(comes([&] { return again->output().find("[b:1] runs") != std::string::npos; }))
      << again->output();
  again->signal(SIGKILL);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(comes([&] { return is_off("a") && is_off("b"); }));
  std::printf("off %.1f s after the launcher was killed, of which 6 s are the time given\n",
              seconds_since(begin));
  expect_says(hosts_->run_as_user("a", "cat ~/.lockstep/power_off/*.log").second,
              "no word of a launcher for ");
}

TEST_F(PowerOff, IsRefusedBeforeTheFirstStepWhereTheUserMayNot) {
  const std::string shell = lockstep_here(
      "launch -H a,b --cwd '~/work' --power-off-anyway --program /bin/sh -- -c 'echo runs'");
  const auto [code, said] = hosts_->run("control", shell, 60s);
  EXPECT_EQ(code, 2) << said;
  expect_says(said, "--power-off: this user may not switch the machine off without a password");
  EXPECT_EQ(said.find("runs\n"), std::string::npos) << said;
}

}  // namespace
}  // namespace lockstep
