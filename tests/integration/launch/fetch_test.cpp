// `lockstep fetch` brings a run together from hosts that share nothing: each has a part of it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/digest.h"
#include "base/text.h"
#include "support/apart_runs.h"
#include "support/expect_says.h"

namespace lockstep {
namespace {

using std::chrono::seconds;

constexpr const char* kTwo =
    "[hosts]\nnames = ['a', 'b']\nfiles = 'own'\n"
    "[[host]]\nname = 'a'\nuser = 'ana'\n"
    "[[host]]\nname = 'b'\nuser = 'ben'\nhome = '/data/people/ben'\n";

const std::string kFirst = "{\"event\":\"start\",\"time\":100.5,\"first_step\":1}\n";
const std::string kSecond = "{\"event\":\"resume\",\"time\":200.5,\"first_step\":2}\n";
const std::string kThird = "{\"event\":\"resume\",\"time\":300.5,\"first_step\":3}\n";

std::string step_line(int step) {
  return fmt::format("{{\"event\":\"step\",\"time\":{}.0,\"step\":{},\"epoch\":0}}\n", 100 + step,
                     step);
}

std::string bytes_like(std::size_t count, uint32_t seed) {
  std::string out(count, '\0');
  for (char& c : out) c = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  return out;
}

// An invented run in ~/work/run of each host, and a folder here to bring it to.
class Fetch : public ::testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_VIRTUAL_HOSTS(); }

  static fs::path there(VirtualHosts& hosts, const std::string& host, const fs::path& path = "") {
    const fs::path home = host == "a" ? "/home/ana" : "/data/people/ben";
    return hosts.lab().path_on_this_machine(host, home / "work/run" / path);
  }
  static void put(VirtualHosts& hosts, const std::string& host, const fs::path& path,
                  const std::string& text) {
    const fs::path file = there(hosts, host, path);
    fs::create_directories(file.parent_path());
    write_file(file, text);
  }
  static void append(VirtualHosts& hosts, const std::string& host, const fs::path& path,
                     const std::string& text) {
    std::ofstream(there(hosts, host, path), std::ios::app) << text;
  }
  static void put_rank0(VirtualHosts& hosts, const std::string& host) {
    put(hosts, host, "config.toml", "# of " + host + "\n");
    put(hosts, host, "version.txt", "lockstep 1\nhost " + host + "\n");
    put(hosts, host, "logs/rank00.log", "2026-11-24 10:00:00.000 rank 0 on " + host + "\n");
    put(hosts, host, "metrics.jsonl", kFirst + step_line(1));
  }
  // `best` is the step that has the best evaluation so far.
  static void put_checkpoint(VirtualHosts& hosts, const std::string& host, int step, int best,
                             const std::string& weights) {
    const std::string state = fmt::format(
        "{{\"step\": {}, \"validation\": [{{\"metric\": \"bleu\", \"best\": [{{\"step\": {}, "
        "\"value\": 1}}]}}]}}",
        step, best);
    const fs::path folder = fmt::format("checkpoints/step_{}", step);
    nlohmann::json done;
    for (const auto& [name, text] :
         {std::pair<std::string, std::string>{"weights.safetensors", weights},
          {"state.json", state}}) {
      put(hosts, host, folder / name, text);
      done[name] = {{"bytes", text.size()}, {"sha256", sha256_hex(std::as_bytes(std::span(text)))}};
    }
    put(hosts, host, folder / "DONE", done.dump());
  }

  std::string command(const std::string& words = "") const {
    return fmt::format("cd {} && exec '{}' fetch -H a,b run --cwd '~/work' {}",
                       folder_.path().string(), LOCKSTEP_PROGRAM, words);
  }
  std::pair<int, std::string> fetch(VirtualHosts& hosts, const std::string& words = "") const {
    return hosts.run("control", command(words), seconds(120));
  }
  std::string here(const fs::path& path) const { return read_file(run_ / path); }
  bool is_here(const fs::path& path) const { return fs::exists(run_ / path); }

  TemporaryFolder folder_;
  fs::path run_ = folder_.path() / "run";
};

TEST_F(Fetch, BringsWhatEachHostHasAndASecondCallMovesNothing) {
  VirtualHosts hosts(kTwo);
  put_rank0(hosts, "a");
  put(hosts, "a", "events/events.out.tfevents.1.a.7.v2", "events");
  put(hosts, "a", "report/report.html", "made of the rest");
  put_checkpoint(hosts, "a", 10, 10, "old");
  put_checkpoint(hosts, "a", 20, 10, "middle");
  put_checkpoint(hosts, "a", 30, 10, "new");
  put(hosts, "a", "checkpoints/step_40/weights.safetensors", "no DONE is there yet");
  put(hosts, "a", "checkpoints/step_50.part/weights.safetensors", "being written");
  put(hosts, "b", "config.toml", "# of b\n");
  put(hosts, "b", "logs/rank01.log", "2026-11-24 10:00:00.000 rank 1 on b\n");
  put(hosts, "b", "logs/rank01.error", "error: of rank 1\n");
  fs::create_directories(run_);
  write_file(run_ / "launch.jsonl", "{\"time\":99.0,\"event\":\"start\"}\n");

  auto [code, said] = fetch(hosts);
  ASSERT_EQ(code, 0) << said;
  expect_says(said, "checkpoints: step_10, step_30\n");
  EXPECT_EQ(here("config.toml"), "# of a\n") << "rank 0's";
  EXPECT_EQ(here("metrics.jsonl"), kFirst + step_line(1));
  EXPECT_EQ(here("logs/rank01.log"), "2026-11-24 10:00:00.000 rank 1 on b\n");
  EXPECT_EQ(here("logs/rank01.error"), "error: of rank 1\n");
  EXPECT_EQ(here("events/events.out.tfevents.1.a.7.v2"), "events");
  EXPECT_EQ(here("launch.jsonl"), "{\"time\":99.0,\"event\":\"start\"}\n") << "the launcher's";
  EXPECT_EQ(here("checkpoints/step_30/weights.safetensors"), "new");
  EXPECT_EQ(here("checkpoints/step_10/weights.safetensors"), "old") << "the best";
  for (const char* not_wanted : {"checkpoints/step_20", "checkpoints/step_40", "report",
                                 "checkpoints/step_50.part", "checkpoints/step_50"}) {
    EXPECT_FALSE(is_here(not_wanted)) << not_wanted;
  }
  std::tie(code, said) = fetch(hosts);
  ASSERT_EQ(code, 0) << said;
  expect_says(said, "files, nothing new\n");
  expect_says(said, "run: 0 B moved, 0 files written");
  std::tie(code, said) = fetch(hosts, "--checkpoints all");
  ASSERT_EQ(code, 0) << said;
  expect_says(said, "checkpoints: step_10, step_20, step_30\n");
}

TEST_F(Fetch, OfAFileThatGrewOnlyTheTailIsMoved) {
  VirtualHosts hosts(kTwo);
  put_rank0(hosts, "a");
  std::string metrics = kFirst;
  for (int step = 1; step < 40'000; ++step) metrics += step_line(step);
  put(hosts, "a", "metrics.jsonl", metrics);
  put(hosts, "a", "live.json", "{\"step\": 1}");
  ASSERT_EQ(fetch(hosts).first, 0);
  append(hosts, "a", "metrics.jsonl", step_line(40'000) + "{\"event\":\"st");
  put(hosts, "a", "live.json", "{\"step\": 2}");
  auto [code, said] = fetch(hosts);
  ASSERT_EQ(code, 0) << said;
  expect_says(said,
              fmt::format("run: {} B moved, 2 files written", step_line(40'000).size() + 12 + 11));
  EXPECT_EQ(here("metrics.jsonl"), metrics + step_line(40'000)) << "whole lines";
  EXPECT_EQ(here("live.json"), "{\"step\": 2}");
}

TEST_F(Fetch, AttemptsWithRankZeroOnSeveralHostsAreJoined) {
  VirtualHosts hosts(kTwo);
  put_rank0(hosts, "a");
  put(hosts, "a", "metrics.jsonl", kFirst + step_line(1) + kThird + step_line(3));
  put(hosts, "a", "times/attempt_1.bin", "LSTIMING");
  put_rank0(hosts, "b");
  put(hosts, "b", "metrics.jsonl", kSecond + step_line(2));
  put(hosts, "b", "logs/rank00.log", "2026-11-24 11:00:00.000 rank 0 on b\n");
  put(hosts, "b", "times/attempt_1.bin", "LSTIMING");
  put(hosts, "b", "launch.jsonl", "{\"time\":2.0}\n");
  put(hosts, "a", "launch.jsonl", "{\"time\":1.0}\n{\"time\":3.0}\n");
  put_checkpoint(hosts, "b", 20, 10, "of b");
  put_checkpoint(hosts, "a", 10, 10, "of a");
  const auto [code, said] = fetch(hosts);
  ASSERT_EQ(code, 0) << said;
  expect_says(said, "rank 0 was on b, then on a: their attempts are joined\n");
  EXPECT_EQ(here("metrics.jsonl"),
            kFirst + step_line(1) + kSecond + step_line(2) + kThird + step_line(3));
  EXPECT_EQ(here("config.toml"), "# of a\n") << "of the host where rank 0 was last";
  EXPECT_EQ(here("logs/rank00.log"),
            "2026-11-24 10:00:00.000 rank 0 on a\n2026-11-24 11:00:00.000 rank 0 on b\n");
  EXPECT_EQ(here("launch.jsonl"), "{\"time\":1.0}\n{\"time\":2.0}\n{\"time\":3.0}\n");
  EXPECT_TRUE(is_here("times/attempt_2.bin"));
  EXPECT_EQ(here("checkpoints/step_20/weights.safetensors"), "of b");
  EXPECT_EQ(here("checkpoints/step_10/weights.safetensors"), "of a");
}

TEST_F(Fetch, OneThatBreaksOffGoesOnWithinTheFile) {
  VirtualHosts hosts(std::string("[network]\ncontrol = 'same'\nrate_mbit = 100\n") + kTwo);
  const std::string weights = bytes_like(40 << 20, 1);
  put_rank0(hosts, "a");
  put_checkpoint(hosts, "a", 10, 10, weights);
  const fs::path part = run_ / "checkpoints/step_10.part/weights.safetensors";
  auto program = hosts.start("control", {"/bin/sh", "-c", command()});
  std::error_code none;
  for (int i = 0; i < 6000 && fs::file_size(part, none) + 1 < (8 << 20) + 1; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  hosts.cut("a");
  ASSERT_EQ(program->wait(seconds(60)), 4) << program->output();
  expect_says(program->output(), "1 of 2 hosts did not give what they have");
  expect_says(program->output(), "the same command again goes on");
  EXPECT_FALSE(is_here("checkpoints/step_10"));
  EXPECT_EQ(here("config.toml"), "# of a\n");
  const auto before = static_cast<int64_t>(fs::file_size(part));
  ASSERT_GE(before, 8 << 20);
  hosts.heal("a");
  const auto [code, said] = fetch(hosts);
  ASSERT_EQ(code, 0) << said;
  expect_says(said, fmt::format("run: {} moved", short_bytes(static_cast<double>(weights.size()) -
                                                             static_cast<double>(before))));
  EXPECT_TRUE(here("checkpoints/step_10/weights.safetensors") == weights);
}

TEST_F(Fetch, ACheckpointWhoseBytesChangedIsPassedOver) {
  VirtualHosts hosts(kTwo);
  put_rank0(hosts, "a");
  put(hosts, "b", "config.toml", "# of b\n");
  put_checkpoint(hosts, "a", 10, 10, "older");
  put_checkpoint(hosts, "a", 20, 10, "right");
  put(hosts, "a", "checkpoints/step_20/weights.safetensors", "wrong");
  auto [code, said] = fetch(hosts);
  ASSERT_EQ(code, 0) << said;
  expect_says(said, "a: checkpoints/step_20 is passed over: weights.safetensors has another hash");
  expect_says(said, "checkpoints: step_10\n");
  put_checkpoint(hosts, "b", 20, 10, "right");
  std::tie(code, said) = fetch(hosts);
  ASSERT_EQ(code, 0) << said;
  EXPECT_EQ(here("checkpoints/step_20/weights.safetensors"), "right") << "from b";
}

TEST_F(Fetch, AFolderThatNoHostHasIsSaidAndNothingIsMade) {
  VirtualHosts hosts(kTwo);
  const auto [code, said] = fetch(hosts);
  EXPECT_EQ(code, 2);
  expect_says(said, "error: ~/work/run: no such folder on a, b");
  EXPECT_FALSE(fs::exists(run_));
}

TEST_F(Fetch, AFullDiskHereIsSaidAndTheNextCallGoesOn) {
  VirtualHosts hosts(kTwo);
  put_rank0(hosts, "a");
  put_checkpoint(hosts, "a", 10, 10, bytes_like(6 << 20, 1));
  const std::string on_disk = fmt::format(
      "mkdir -p {0} && mount -t tmpfs -o size=4m tmpfs {0} && {{ ({1}); c=$?; "
      "({1} --checkpoints none); echo then $?; exit $c; }}",
      run_.string(), command());
  const auto [code, said] = hosts.run("control", on_disk, seconds(60));
  EXPECT_EQ(code, 4) << said;
  expect_says(said, "its disk has 4.2 MB free, 6.3 MB are needed");
  expect_says(said, "try: --checkpoints none, or --to a folder of another disk");
  expect_says(said, "then 0\n");
}

// This machine loses power, its disk refuses or the fetch is killed, in any change of a file: what
// is in the folder under its own name is whole, or grows, and the next call brings the rest.
TEST_F(Fetch, OneThatDiesAnywhereGoesOn) {
  VirtualHosts hosts(kTwo);
  put_rank0(hosts, "a");
  put_checkpoint(hosts, "a", 10, 10, bytes_like(300'000, 1));
  put(hosts, "b", "logs/rank01.log", "2026-11-24 10:00:00.000 rank 1 on b\n");
  const std::string count = (folder_.path() / "count").string();
  const auto failing = [&](long nth, const std::string& what) {
    fs::remove_all(run_);
    fs::remove(count);
    const std::string variables = fmt::format(
        "export LD_PRELOAD={} LOCKSTEP_FAILING_FILES='{} {} {}' LOCKSTEP_COUNTED_FILES={}; ",
        LOCKSTEP_FAILING_FILES, run_.string(), nth, what, count);
    return hosts.run("control", variables + command(), seconds(120));
  };
  const auto contents = [&] {
    std::map<std::string, std::string> out;
    if (!fs::exists(run_)) return out;
    for (const auto& entry : fs::recursive_directory_iterator(run_)) {
      const std::string name = fs::relative(entry.path(), run_).string();
      if (entry.is_regular_file() && !name.starts_with(".")) out[name] = read_file(entry.path());
    }
    return out;
  };
  ASSERT_EQ(failing(0, "none").first, 0);
  const auto whole = contents();
  long all = 0;
  std::memcpy(&all, read_file(count).data(), sizeof all);
  ASSERT_GT(all, 20);
  const long every = std::getenv("LOCKSTEP_EVERY_CRASH_POINT") != nullptr ? 1 : all / 5 + 1;
  for (const char* fault : {"kill", "power", "ENOSPC"}) {
    for (long nth = 1; nth <= all; nth += every) {
      const auto [code, said] = failing(nth, fault);
      const std::string when = fmt::format("{} in change {} of {}: {}", fault, nth, all, said);
      // What needs space may be done before the n-th change: their number is not always the same.
      if (std::string(fault) == "ENOSPC" && contents() != whole) {
        EXPECT_EQ(code, 4) << when;
      }
      if (is_here("checkpoints/step_10")) {
        EXPECT_EQ(here("checkpoints/step_10/weights.safetensors"), bytes_like(300'000, 1)) << when;
      }
      const auto [again, then] = fetch(hosts);
      ASSERT_EQ(again, 0) << when << then;
      EXPECT_EQ(contents(), whole) << when;
      if (HasFailure()) return;
    }
  }
}

TEST_F(Fetch, WhatWasChangedHereIsNotOverwritten) {
  VirtualHosts hosts(kTwo);
  put_rank0(hosts, "a");
  ASSERT_EQ(fetch(hosts).first, 0);
  write_file(run_ / "metrics.jsonl", "mine\n");
  append(hosts, "a", "metrics.jsonl", step_line(2));
  const auto [code, said] = fetch(hosts);
  EXPECT_EQ(code, 2) << said;
  expect_says(said, "run/metrics.jsonl: was changed here and would be lost");
  EXPECT_EQ(here("metrics.jsonl"), "mine\n");
}

TEST_F(Fetch, ARunThatNoFetchBroughtIsLeftAlone) {
  VirtualHosts hosts(kTwo);
  put_rank0(hosts, "a");
  fs::create_directories(run_);
  write_file(run_ / "config.toml", "mine\n");
  const auto [code, said] = fetch(hosts);
  EXPECT_EQ(code, 2) << said;
  expect_says(said, "run: holds a run that no fetch brought there");
  EXPECT_EQ(fetch(hosts, "--to other").first, 0);
}

TEST_F(Fetch, LinksAndNamesThatForgeALineOfTheListAreLeftOut) {
  VirtualHosts hosts(kTwo);
  put_rank0(hosts, "a");
  put(hosts, "a", "x\nfile 5 6 7 ./forged", "");
  fs::create_symlink("/etc/passwd", there(hosts, "a", "link"));
  const auto [code, said] = fetch(hosts);
  ASSERT_EQ(code, 0) << said;
  EXPECT_FALSE(is_here("forged"));
  EXPECT_FALSE(is_here("link"));
}

TEST_F(Fetch, LogsAloneLeaveOutTheRest) {
  VirtualHosts hosts(kTwo);
  put_rank0(hosts, "a");
  put_checkpoint(hosts, "a", 10, 10, "weights");
  put(hosts, "b", "logs/rank01.log", "2026-11-24 10:00:00.000 rank 1 on b\n");
  const auto [code, said] = fetch(hosts, "--logs-only");
  ASSERT_EQ(code, 0) << said;
  EXPECT_TRUE(is_here("logs/rank00.log") && is_here("logs/rank01.log"));
  EXPECT_FALSE(is_here("metrics.jsonl") || is_here("checkpoints"));
}

// A real training whose rank 1 is killed, and then rank 0's host is lost.
class FetchOfATraining : public ApartRuns {
 protected:
  std::pair<int, std::string> fetch(HostsApart& hosts) const {
    return hosts.run("control", lockstep_here("fetch -H a,b run --cwd '~/work'"), seconds(120));
  }
  nlohmann::json report() const {
    const ProgramResult result = run_lockstep("report --json " + (desk() / "run").string());
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return nlohmann::json::parse(result.output, nullptr, false);
  }
  static std::map<std::string, std::string> findings(const nlohmann::json& report) {
    std::map<std::string, std::string> out;
    for (const auto& finding : report.at("findings")) out[finding.at("id")] = finding.at("text");
    return out;
  }
  static std::size_t attempts(const nlohmann::json& report) {
    for (const auto& answer : report.at("answers")) {
      if (answer.at("id") == "failures") return answer.at("facts").at("attempts");
    }
    return 0;
  }
};

TEST_F(FetchOfATraining, LetsTheReportKnowRestartsAndHostsWhereverRankZeroWas) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  HostsApart hosts;
  bring(hosts);
  auto job =
      launch(hosts, "run", "-H a:1,b:1 --min-hosts 1 --host-timeout 10 --host-poll 600 --silence 3",
             "training.steps=1000000 checkpoint.every=50 checkpoint.keep=100 "
             "monitor.every_seconds=1");
  job->expect("step_50");
  hosts.run("b",
            "for p in /proc/[0-9]*; do grep -qzx LOCKSTEP_RANK=1 $p/environ && "
            "kill -9 ${p#/proc/}; done");
  job->expect("attempt 1: 2 ranks on 2 of 2 hosts");
  job->expect("after the ranks stopped");
  auto [code, said] = fetch(hosts);  // while it goes on
  ASSERT_EQ(code, 0) << said;
  nlohmann::json found = report();
  EXPECT_EQ(attempts(found), 2u);
  EXPECT_NE(findings(found)["failure"].find("rank 1"), std::string::npos) << found.at("findings");

  hosts.power_off("a");
  job->expect("attempt 2: 1 rank on 1 of 2 hosts");
  const fs::path there = run_on(hosts, "b", "run") / "metrics.jsonl";
  std::error_code none;
  for (int i = 0; i < 6000 && fs::file_size(there, none) + 1 < 20'000; ++i) {  // some steps
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  job->signal(SIGTERM);
  ASSERT_EQ(job->wait(seconds(60)), 143) << job->output();
  std::tie(code, said) = fetch(hosts);
  EXPECT_EQ(code, 4) << said;
  expect_says(said, "1 of 2 hosts did not give what they have");
  hosts.power_on("a");
  std::tie(code, said) = fetch(hosts);
  ASSERT_EQ(code, 0) << said;
  expect_says(said, "rank 0 was on a, then on b: their attempts are joined\n");
  found = report();
  EXPECT_EQ(attempts(found), 3u);
  expect_says(found.dump(), "host a lost");
  std::set<std::string> names;
  for (const nlohmann::json& line : metrics_of(desk() / "run", "host"))
    names.insert(line["host"].get<std::string>());
  EXPECT_EQ(names, (std::set<std::string>{"a", "b"}));
  std::tie(code, said) = hosts.run("control", lockstep_here("evaluate run --checkpoint newest"));
  EXPECT_EQ(code, 0) << said;
}

TEST_F(FetchOfATraining, OfAJobThatGoesOnByItselfBringsItsLaunchersEvents) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  HostsApart hosts;
  bring(hosts);
  const std::string home = "export OMP_NUM_THREADS=1 HOME=" + (folder_->path() / "home").string();
  const auto lockstep = [&](const std::string& words) {
    return hosts.run("control", home + "; " + lockstep_here(words), seconds(120));
  };
  auto [code, said] = lockstep(
      "launch --detach -H a:1,b:1 --cwd '~/work' -- train tiny.toml run.folder=runs/job "
      "training.steps=20 checkpoint.every=10");
  ASSERT_EQ(code, 0) << said;
  const std::size_t at = said.find("lockstep attach ") + 16;
  const std::string id = said.substr(at, said.find(' ', at) - at);
  std::tie(code, said) = lockstep("attach " + id);
  ASSERT_EQ(code, 0) << said;
  std::tie(code, said) = lockstep("fetch " + id);
  ASSERT_EQ(code, 0) << said;
  expect_says(said, "checkpoints: step_20\n");
  const fs::path run = desk() / "runs/job";
  expect_says(read_file(run / "launch.jsonl"), "\"event\":\"end\"");
  EXPECT_EQ(metrics_of(run, "step").size(), 20u);
  EXPECT_TRUE(fs::exists(run / "logs/rank00.log") && fs::exists(run / "logs/rank01.log"));
  std::tie(code, said) = lockstep("fetch nosuchjob");
  EXPECT_EQ(code, 2) << said;
  expect_says(said, "no job \"nosuchjob\"");
}

}  // namespace
}  // namespace lockstep
