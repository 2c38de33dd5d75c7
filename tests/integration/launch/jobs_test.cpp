// Jobs that go on without the machine that started them
// (docs/launch.md#jobs-that-go-on-without-you), on hosts that share nothing: other users, other
// homes. The control host is the laptop.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "launch/jobs/job_record.h"
#include "support/apart_runs.h"
#include "support/expect_says.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;

class Jobs : public ApartRuns {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_VIRTUAL_HOSTS();
    ApartRuns::SetUp();
    hosts_ = std::make_unique<HostsApart>(ApartOptions{.names = {"a", "b", "c"}});
    bring(*hosts_);
  }
  void TearDown() override {
    if (HasFailure() && hosts_) {
      for (const char* host : {"a", "b", "c"}) {
        std::printf("--- %s\n%s\n", host,
                    hosts_
                        ->run_as_user(host,
                                      "cd ~/.lockstep/jobs && for f in */out */err */job.json; do "
                                      "echo \"- $f\"; tail -n 40 $f; done")
                        .second.c_str());
      }
    }
    hosts_.reset();
  }

  std::string shell_of(const std::string& words) const {
    return fmt::format("cd '{}' && HOME='{}' OMP_NUM_THREADS=1 exec '{}' {}", desk().string(),
                       home_.path().string(), LOCKSTEP_PROGRAM, words);
  }
  // Runs lockstep on the laptop.
  std::pair<int, std::string> control(const std::string& words) {
    return hosts_->run("control", shell_of(words), 180s);
  }
  std::unique_ptr<HostProgram> start(const std::string& words) {
    return hosts_->start("control", {"/bin/sh", "-c", shell_of(words)});
  }
  // Starts a training, and returns its id.
  std::string detach(const std::string& options, const std::string& train) {
    const auto [code, said] =
        control(fmt::format("launch --detach --cwd '~/work' {} -- train tiny.toml "
                            "run.folder=runs/nmt {}",
                            options, train));
    EXPECT_EQ(code, 0) << said;
    const std::size_t at = said.find("lockstep attach ");
    EXPECT_NE(at, std::string::npos) << said;
    return at == std::string::npos ? "" : said.substr(at + 16, said.find(' ', at + 16) - at - 16);
  }

  JobRecord record(const std::string& host, const std::string& id) {
    return job_record_of(read_file(hosts_->file(host, ".lockstep/jobs/" + id + "/job.json")), host);
  }
  // The records of a run on a host: steps, in the order in which they were written.
  std::vector<int> steps_on(const std::string& host) {
    std::vector<int> out;
    const fs::path file = hosts_->file(host, "work/runs/nmt/metrics.jsonl");
    if (!fs::exists(file)) return out;
    for (const std::string& line : read_lines(file)) {
      const auto json = nlohmann::json::parse(line, nullptr, false);
      if (json.is_object() && json.value("event", "") == "step") {
        out.push_back(json.value("step", 0));
      }
    }
    return out;
  }
  std::vector<int> checkpoints_on(const std::string& host) {
    std::vector<int> out;
    std::error_code none;
    const fs::path folder = hosts_->file(host, "work/runs/nmt/checkpoints");
    for (const auto& entry : fs::directory_iterator(folder, none)) {
      const std::string name = entry.path().filename().string();
      if (!fs::exists(entry.path() / "DONE") || !name.starts_with("step_")) continue;
      out.push_back(std::stoi(name.substr(5)));
    }
    std::sort(out.begin(), out.end());
    return out;
  }
  static bool wait_until(const std::function<bool()>& done, seconds limit = 120s) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!done()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(50ms);
    }
    return true;
  }
  // Lines of authorized_keys, and key files, of a host.
  std::string keys_of(const std::string& host) {
    return hosts_
        ->run(host, fmt::format("grep -c . {0}/.ssh/authorized_keys; "
                                "find {0}/.lockstep -name key -o -name known_hosts -o -name door",
                                hosts_->home(host).string()))
        .second;
  }
  bool ended(const std::string& host, const std::string& id) {
    return record(host, id).state == JobState::kEnded;
  }

  TemporaryFolder home_;  // of the laptop's user
  std::unique_ptr<HostsApart> hosts_;
};

TEST_F(Jobs, AJobGoesOnAndEndsWithoutTheMachineThatStartedIt) {
  const std::string id = detach("-H a,b", "training.steps=150 checkpoint.every=50");
  ASSERT_EQ(id.substr(0, 4), "nmt-");
  hosts_->cut("control");
  ASSERT_TRUE(wait_until([&] { return ended("a", id) && ended("b", id); }));
  EXPECT_EQ(record("a", id).exit_code, 0);
  EXPECT_EQ(steps_on("a").back(), 150);
  hosts_->heal("control");
  for (const char* host : {"a", "b"}) EXPECT_EQ(keys_of(host), "1\n") << host;
  const auto [listed, jobs] = control("jobs");
  EXPECT_EQ(listed, 0) << jobs;
  expect_says(jobs, id);
  expect_says(jobs, "ended: 0");
  const auto [code, said] = control("attach " + id.substr(0, 6) + " --lines 5");
  EXPECT_EQ(code, 0) << said;
  expect_says(said, "job " + id + " has ended with exit code 0");
  expect_says(control("logs " + id).second, "150/150");
  expect_says(control("logs --rank 1 " + id).second, "keeps its own");
}

TEST_F(Jobs, AJobIsShownLeftStoppedAndResumed) {
  write_file(home_.path() / "told", "cat >>~/told\n");
  const std::string id = detach("-H a,b --from b --price b=7/h,2/h --budget 1000 --notify @" +
                                    (home_.path() / "told").string(),
                                "training.steps=1000000");
  ASSERT_NE(id, "");
  const std::string jobs = control("jobs -H a,b").second;
  expect_says(jobs, "running");
  expect_says(jobs, "/1000.00");
  EXPECT_EQ(record("a", id).launcher, "b");

  auto attached = start("attach " + id);
  attached->expect("  loss ");
  hosts_->cut("b");
  attached->expect("the connection to b is lost");
  hosts_->heal("b");
  attached->expect("connected to b again");
  attached->signal(SIGINT);
  EXPECT_EQ(attached->wait(30s), 130);
  expect_says(attached->output(), "left job " + id + ", which goes on");

  const auto [refused, why] = control("resume " + id);
  EXPECT_EQ(refused, 2) << why;
  expect_says(why, "job " + id + " runs: its launcher is on b");
  const auto [stopped, said] = control("stop " + id);
  EXPECT_EQ(stopped, 0) << said;
  expect_says(said, "job " + id + " has ended with exit code 143");
  expect_says(said, "newest checkpoint: ~/work/runs/nmt/checkpoints/step_");
  for (const char* host : {"a", "b"}) EXPECT_EQ(keys_of(host), "1\n") << host;
  const int newest = checkpoints_on("a").back();
  const std::string told = read_file(hosts_->file("b", "told"));
  expect_says(told, "ended: stopped by SIGTERM");
  expect_says(told, "of 1000.00 spent");

  const auto [resumed, words] = control("resume " + id);
  EXPECT_EQ(resumed, 0) << words;
  const std::vector<std::string> options = record("a", id).options;
  const auto spent = std::find(options.begin(), options.end(), "--spent");
  ASSERT_NE(spent, options.end()) << "what the first launcher spent counts";
  EXPECT_GT(std::stod(*(spent + 1)), 0);
  ASSERT_TRUE(wait_until([&] { return steps_on("a").back() > newest; }));
  const std::vector<int> steps = steps_on("a");
  EXPECT_NE(std::find(steps.begin(), steps.end(), newest + 1), steps.end());
  EXPECT_EQ(control("stop --kill " + id).first, 0);
  EXPECT_TRUE(ended("a", id));
}

TEST_F(Jobs, TheKeyOpensTheJobsAgentsAndNothingElse) {
  const std::string id = detach("-H a,b", "training.steps=1000000");
  ASSERT_NE(id, "");
  const auto from_a = [&](const std::string& words) {
    return hosts_
        ->run_as_user("a", fmt::format("ssh -F ~/.lockstep/jobs/{}/config b {}", id, words))
        .second;
  };
  const std::string refusal = "this key is for job " + id + " of lockstep";
  for (const char* words : {"id", "lockstep agent", "lockstep agent --job other", "sh -c id",
                            "lockstep job list", "'lockstep agent; id'", ""}) {
    const std::string said = from_a(words);
    expect_says(said, refusal);
    EXPECT_EQ(said.find("uid="), std::string::npos) << words << ": " << said;
  }
  // Not even as another term of the job, once the words are its own.
  EXPECT_EQ(from_a("'lockstep agent --job " + id + " --term 0'").find("uid="), std::string::npos);
  EXPECT_EQ(
      hosts_->run("control", fmt::format("ls -R '{}' | grep -c key", home_.path().string())).second,
      "0\n");
  EXPECT_EQ(control("stop --kill " + id).first, 0);
}

TEST_F(Jobs, AJobWhoseLauncherIsLostGoesOnFromAnotherHostWithOneCommand) {
  const std::string id =
      detach("-H a,b,c --host-poll 1", "training.steps=1000000 checkpoint.every=10");
  ASSERT_NE(id, "");
  ASSERT_TRUE(wait_until([&] { return checkpoints_on("b").size() > 1; }));
  hosts_->power_off("a");
  const auto [refused, why] = control("resume " + id);
  EXPECT_EQ(refused, 4) << why;
  expect_says(why, "2 of its 3 hosts answer, 3 are needed");
  expect_says(why, "--min-hosts 2 goes on without the others");
  expect_says(control("jobs").second, "lost");
  const int newest = checkpoints_on("b").back();
  const auto [code, said] = control("resume --min-hosts 2 " + id);
  EXPECT_EQ(code, 0) << said;
  expect_says(said, "job " + id + " runs on b, c, a; its launcher is on b");
  ASSERT_TRUE(wait_until([&] { return !steps_on("b").empty(); }));
  EXPECT_EQ(steps_on("b").front(), newest + 1);

  hosts_->power_on("a");  // with its disk, and the key on it
  ASSERT_TRUE(wait_until([&] { return record("a", id).term == 2; }));
  ASSERT_TRUE(wait_until([&] {
    const std::string text = read_file(hosts_->file("b", "work/runs/nmt/launch.jsonl"));
    const std::size_t back = text.find("host_back");
    return back != std::string::npos && text.find("\"first_step\"", back) != std::string::npos;
  }));
  const auto [stopped, last] = control("stop " + id);
  EXPECT_EQ(stopped, 0) << last;
  for (const char* host : {"a", "b", "c"}) EXPECT_EQ(keys_of(host), "1\n") << host;
}

TEST_F(Jobs, OfTwoLaunchersTheOlderIsEndedOnceTheNetworkIsBack) {
  const std::string id = detach("-H a,b --host-poll 1 --host-timeout 5 --min-hosts 1",
                                "training.steps=1000000 checkpoint.every=10");
  ASSERT_NE(id, "");
  ASSERT_TRUE(wait_until([&] { return checkpoints_on("b").size() > 1; }));
  hosts_->cut("a");  // its launcher goes on there alone
  const auto [code, said] = control("resume " + id);
  EXPECT_EQ(code, 0) << said;
  EXPECT_EQ(record("a", id).term, 1);
  hosts_->heal("a");
  ASSERT_TRUE(wait_until([&] { return record("a", id).term == 2; }));
  EXPECT_EQ(record("a", id).launcher, "b");
  const auto launchers = [&](const std::string& host) {
    return hosts_->run(host, "pgrep -c -f '[l]aunch --job'").second;
  };
  ASSERT_TRUE(wait_until([&] { return launchers("a") == "0\n"; }));
  EXPECT_EQ(launchers("b"), "1\n");
  EXPECT_EQ(control("stop " + id).first, 0);
}

TEST_F(Jobs, WhatCannotBeDoneIsSaidBeforeAnythingStarts) {
  const std::string id = detach("-H a", "training.steps=1000000");
  ASSERT_NE(id, "");
  const std::string again =
      "launch --detach --cwd '~/work' -H a,b -- train tiny.toml run.folder=runs/nmt --resume";
  const auto [code, said] = control(again);
  EXPECT_EQ(code, 2) << said;
  expect_says(said, "job " + id + " trains in ~/work/runs/nmt already");
  const auto [unknown, names] = control("stop nmt-zzzz");
  EXPECT_EQ(unknown, 2) << names;
  expect_says(names, "no job \"nmt-zzzz\" was started here");
  expect_says(names, "there: " + id);
  expect_says(control("attach nmt-zzzz -H b").second, "no job \"nmt-zzzz\" on -H");
  const auto [nowhere, folder] =
      control("launch --detach --cwd /tmp/absent -H b -- train tiny.toml run.folder=runs/x");
  EXPECT_EQ(nowhere, 2) << folder;
  expect_says(folder, "the folder /tmp/absent is not there");
  EXPECT_EQ(keys_of("b"), "1\n");
  const auto [taken, why] =
      control("launch --detach --cwd '~/work' -H b -- train absent.toml run.folder=runs/x");
  EXPECT_EQ(taken, 2) << why;
  EXPECT_EQ(control("stop " + id).first, 0);
}

}  // namespace
}  // namespace lockstep
