// Everything that can be repeated of what happens to machines
// (docs/launch.md#what-a-failure-costs), done to a real training: four ranks on two virtual hosts
// that share nothing, over ssh.
#include <signal.h>

#include <map>

#include "base/error.h"
#include "support/expect_says.h"
#include "support/faults.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;

const ApartOptions kNear = {.network = "delay_ms = 0.1\nrate_mbit = 1000\ncontrol = 'separate'"};

class Faults : public ApartRuns {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_VIRTUAL_HOSTS();
    ApartRuns::SetUp();
  }

  Job& start(const std::string& name, const JobOptions& options = {},
             const ApartOptions& lab = kNear) {
    hosts_ = std::make_unique<HostsApart>(lab);
    bring(*hosts_);
    job_ = std::make_unique<Job>(*hosts_, desk(), name, options);
    return *job_;
  }
  void TearDown() override {
    if (HasFailure() && job_) std::printf("%s\n", job_->output().c_str());
    job_.reset();  // before its hosts
    hosts_.reset();
  }

  // Does something to a running job, and waits until the launcher has said something of it and the
  // ranks have gone on.
  FaultRecord after(const std::string& event, const std::function<void()>& fault,
                    double limit = 40) {
    double start = unix_now();
    fault();
    FaultRecord record{.event = event};
    auto noticed = [&] {
      for (const nlohmann::json& line : job_->events("", start)) {
        std::string name = line.value("event", "");
        if (name != "failure" && name != "host_lost" && name != "reclaimed") continue;
        record.detection = line.value("time", 0.0) - start;
        record.said = line.value("text", "");
        return true;
      }
      return false;
    };
    EXPECT_TRUE(wait_until(noticed, limit)) << event << ": not noticed";
    auto gone_on = [&] {
      auto steps = job_->events("first_step", start);
      if (!steps.empty()) record.next_step = steps.front().value("time", 0.0) - start;
      return !steps.empty();
    };
    EXPECT_TRUE(wait_until(gone_on, limit)) << event << ": no step after it";
    record_fault(record);
    // A checkpoint of this attempt: the next fault is not one more without progress.
    double now = unix_now();
    wait_until([&] { return job_->steps_since(now).size() > 12; }, limit);
    return record;
  }

  std::unique_ptr<HostsApart> hosts_;
  std::unique_ptr<Job> job_;
};

TEST_F(Faults, RanksThatEndOrStandStillAreNamedAndTheJobGoesOn) {
  Job& job = start("ranks");
  ASSERT_TRUE(job.wait_for_steps(15));
  FaultRecord record = after("kill -9 of rank 3", [&] { job.signal_rank(3, "KILL"); });
  EXPECT_LT(record.detection, 2);
  EXPECT_NE(record.said.find("rank 3 on b was killed by SIGKILL"), std::string::npos);

  record = after("kill -9 of rank 0, which serves the store", [&] { job.signal_rank(0, "KILL"); });
  EXPECT_LT(record.detection, 2);
  EXPECT_NE(record.said.find("rank 0 on a was killed by SIGKILL"), std::string::npos);

  record = after("kill -SEGV of rank 2", [&] { job.signal_rank(2, "SEGV"); });
  EXPECT_NE(record.said.find("rank 2 on b was killed by SIGSEGV"), std::string::npos);

  record = after("kill -STOP of rank 1", [&] { job.signal_rank(1, "STOP"); });
  EXPECT_GT(record.detection, 4);
  EXPECT_LT(record.detection, 9);
  EXPECT_NE(job.output().find("lost rank 1 on a"), std::string::npos);
  EXPECT_NE(job.output().find("no sign of life for"), std::string::npos);
}

TEST_F(Faults, HostsThatAreLostComeBackOrAreDoneWithout) {
  Job& job = start("hosts", {.launch = "--min-hosts 1 --host-timeout 10 --host-poll 0.5"});
  ASSERT_TRUE(job.wait_for_steps(15));
  FaultRecord record = after("kill -9 of the agent on b", [&] {
    for (int process : job.processes_in("b", " agent ")) {
      hosts_->run("b", fmt::format("kill -9 {}", process));
    }
  });
  EXPECT_LT(record.detection, 2);

  record = after("power of b off, for ever: on with a", [&] { hosts_->power_off("b"); });
  EXPECT_LT(record.detection, 9);
  EXPECT_EQ(job.events("start").back().value("ranks", 0), 2);

  double start = unix_now();
  hosts_->power_on("b");
  auto all_back = [&] {
    auto starts = job.events("start", start);
    return !starts.empty() && starts.back().value("ranks", 0) == 4 &&
           !job.events("first_step", start).empty();
  };
  EXPECT_TRUE(wait_until(all_back, 60));
  auto noticed = job.events("host_back", start);
  ASSERT_FALSE(noticed.empty());
  record_fault({"power of b on again: on with both", noticed.front().value("time", 0.0) - start,
                job.events("first_step", start).back().value("time", 0.0) - start,
                noticed.front().value("text", "")});
}

TEST_F(Faults, ACutOfTwoSecondsIsSurvivedWithoutARestart) {
  Job& job = start("short_cut");
  ASSERT_TRUE(job.wait_for_steps(15));
  double start = unix_now();
  hosts_->cut("b", 2.0);
  std::this_thread::sleep_for(2100ms);
  auto gone_on = [&] { return job.steps_since(start + 2).size() > 5; };
  EXPECT_TRUE(wait_until(gone_on, 20));
  EXPECT_EQ(job.attempt(), 0) << job.output();
  record_fault({"network of b cut for 2 s", -1,
                job.steps_since(start + 2).front().value("time", 0.0) - start, "nothing"});
}

// Where the second cut begins, TCP would still wait for its next try after the first one.
TEST_F(Faults, TwoShortCutsAreNoLongSilence) {
  if (!fs::exists("/proc/sys/net/ipv4/tcp_rto_max_ms")) {
    GTEST_SKIP() << "this kernel is older than Linux 6.15";
  }
  Job& job = start("two_cuts");
  ASSERT_TRUE(job.wait_for_steps(15));
  hosts_->cut("b", 2.0);
  std::this_thread::sleep_for(3200ms);
  hosts_->cut("b", 1.7);
  std::this_thread::sleep_for(1700ms);
  const double start = unix_now();
  EXPECT_TRUE(wait_until([&] { return job.steps_since(start).size() > 5; }, 20));
  EXPECT_EQ(job.attempt(), 0) << job.output();
}

TEST_F(Faults, ALongerCutIsNamedAndGoneOnFromWhenItHeals) {
  Job& job = start("long_cut", {.launch = "--interface eth0"});  // not the one that ssh has
  ASSERT_TRUE(job.wait_for_steps(15));
  FaultRecord record = after("network of b cut for 10 s", [&] { hosts_->cut("b", 10.0); });
  EXPECT_LT(record.detection, 9);
  EXPECT_NE(job.output().find("no sign of life for"), std::string::npos);
  record = after("network of b cut one way for 8 s", [&] { hosts_->cut_outgoing("b", 8.0); });
  EXPECT_LT(record.detection, 9);
}

TEST_F(Faults, AHostThatIsCutOffForEverIsDoneWithout) {
  Job& job = start("for_ever", {.launch = "--min-hosts 1 --host-timeout 10 --host-poll 0.5"},
                   {.network = "rate_mbit = 1000"});
  ASSERT_TRUE(job.wait_for_steps(15));
  FaultRecord record = after("everything of b cut for ever: on with a", [&] { hosts_->cut("b"); });
  EXPECT_LT(record.detection, 9);
  EXPECT_NE(record.said.find('b'), std::string::npos);
  EXPECT_EQ(job.events("start").back().value("ranks", 0), 2);
  // Nobody tells the ranks of b to end, but their agent's channel is silent too.
  EXPECT_TRUE(wait_until([&] { return job.processes_in("b").empty(); }, 15));
}

TEST_F(Faults, NothingIsLeftAnywhereWhenTheLauncherIsKilled) {
  Job& job = start("launcher");
  ASSERT_TRUE(job.wait_for_steps(5));
  double start = unix_now();
  job.launcher().signal(SIGKILL);
  EXPECT_TRUE(wait_until(
      [&] { return job.processes_in("a").empty() && job.processes_in("b").empty(); }, 5));
  record_fault({"kill -9 of the launcher: no process left", unix_now() - start, -1, ""});
}

TEST_F(Faults, SigtermToTheLauncherSavesACheckpointAndEndsInPeace) {
  Job& job = start("sigterm", {.train = "checkpoint.every=100000"});
  ASSERT_TRUE(wait_until([&] { return job.steps_since(0).size() > 5; }, 60));
  double start = unix_now();
  job.launcher().signal(SIGTERM);
  EXPECT_EQ(job.launcher().wait(20s), 143) << job.output();
  record_fault({"SIGTERM to the launcher: checkpoint, exit 143", unix_now() - start, -1, ""});
  EXPECT_FALSE(fs::is_empty(job.folder() / "checkpoints"));
  EXPECT_TRUE(job.processes_in("a").empty() && job.processes_in("b").empty());
}

TEST_F(Faults, SigtermToARankSavesACheckpointAndGoesOnWithoutItsHost) {
  Job& job = start("reclaimed", {.launch = "--min-hosts 1"});
  ASSERT_TRUE(job.wait_for_steps(5));
  FaultRecord record =
      after("SIGTERM to rank 2 (b is reclaimed)", [&] { job.signal_rank(2, "TERM"); });
  EXPECT_EQ(job.events("start").back().value("ranks", 0), 2);
  EXPECT_NE(record.said.find("SIGTERM"), std::string::npos);
}

TEST_F(Faults, ACheckpointThatWasCutShortIsPassedOver) {
  Job& job = start("cut_short", {.train = "checkpoint.keep=3"});
  ASSERT_TRUE(wait_until([&] { return job.steps_since(0).size() > 45; }, 60));
  job.launcher().signal(SIGKILL);
  ASSERT_TRUE(wait_until([&] { return job.processes_in("a").empty(); }, 5));
  // Each machine keeps them.
  std::map<int, std::vector<fs::path>> found;
  for (const char* host : {"a", "b"}) {
    const fs::path folder = run_on(*hosts_, host, "cut_short") / "checkpoints";
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name.find('.') != std::string::npos || name.rfind("step_", 0) != 0) continue;
      found[std::stoi(name.substr(5))].push_back(entry.path());
    }
  }
  ASSERT_GE(found.size(), 2U);
  const auto newest = std::prev(found.end());
  for (const fs::path& checkpoint : newest->second) {
    const fs::path weights = checkpoint / "weights.safetensors";
    fs::resize_file(weights, fs::file_size(weights) / 2);
  }
  double start = unix_now();
  Job again(*hosts_, desk(), "cut_short", {.train = "--resume"});
  ASSERT_TRUE(wait_until([&] { return !again.steps_since(start).empty(); }, 60)) << again.output();
  int first = again.steps_since(start).front().value("step", 0);
  EXPECT_EQ(first, std::prev(newest)->first + 1) << again.output();
  EXPECT_NE(again.output().find(newest->second.front().filename().string()), std::string::npos);
  record_fault({"newest checkpoint cut short, --resume", -1,
                again.steps_since(start).front().value("time", 0.0) - start, "passed over"});
}

TEST_F(Faults, ANewMachineInThePlaceOfTheFirstGoesOnFromWhatAnotherHas) {
  Job& job = start("replaced", {.train = "training.steps=25"});
  ASSERT_EQ(job.launcher().wait(60s), 0) << job.output();
  fs::remove_all(hosts_->file("a", "work/replaced"));
  Job again(*hosts_, desk(), "replaced", {.train = "training.steps=40 --resume"});
  ASSERT_EQ(again.launcher().wait(60s), 0) << again.output();
  EXPECT_EQ(again.steps_since(0).front().value("step", 0), 26) << again.output();

  for (const char* host : {"a", "b"}) fs::remove_all(hosts_->file(host, "work/replaced"));
  Job none(*hosts_, desk(), "replaced", {.train = "training.steps=40 --resume"});
  EXPECT_EQ(none.launcher().wait(60s), 2) << none.output();
  expect_says(none.output(), "holds no run to go on with");
  EXPECT_FALSE(fs::exists(hosts_->file("a", "work/replaced/config.toml")));
}

TEST_F(Faults, TwoJobsOnTheSameHostsDoNotMeet) {
  Job& job = start("first_of_two", {.train = "training.steps=40"});
  Job second(*hosts_, desk(), "second_of_two", {.train = "training.steps=40"});
  EXPECT_EQ(job.launcher().wait(60s), 0);
  EXPECT_EQ(second.launcher().wait(60s), 0) << second.output();
  EXPECT_EQ(job.attempt(), 0);
  EXPECT_EQ(second.attempt(), 0) << second.output();
}

TEST_F(Faults, WrongInterfacesAndNamesOfLoopbackAreNotChosen) {
  Job& job = start("decoy", {.train = "training.steps=20"}, {.hosts = "decoy = true"});
  EXPECT_EQ(job.launcher().wait(60s), 0);
  EXPECT_EQ(job.attempt(), 0);
  // The sums went over the real one.
  EXPECT_GT(hosts_->lab().counts("a").bytes_in, 500000U);
}

TEST_F(Faults, AnotherVersionOnAHostIsRefused) {
  hosts_ = std::make_unique<HostsApart>();
  bring(*hosts_);
  // It speaks as ours does, of another version.
  const fs::path fake = ".lockstep/current/lockstep";
  hosts_->put_text("b", fake,
                   fmt::format("#!/bin/sh\n{} \"$@\" | sed -u 's/{}/9.9.9/g'\n",
                               HostsApart::kProgram, LOCKSTEP_VERSION));
  fs::permissions(hosts_->file("b", fake), fs::perms{0755});
  double start = unix_now();
  Job job(*hosts_, desk(), "version", {});
  EXPECT_EQ(job.launcher().wait(30s), 2) << job.output();
  record_fault({"another version of lockstep on b", unix_now() - start, -1, ""});
  EXPECT_NE(job.output().find("9.9.9"), std::string::npos) << job.output();
  EXPECT_NE(job.output().find('b'), std::string::npos);
}

TEST_F(Faults, ASlowHostIsNamed) {
  std::unique_ptr<CpuGroup> group;
  try {
    group = std::make_unique<CpuGroup>(fmt::format("lockstep-test-{}", ::getpid()), 0.5);
  } catch (const MachineError& error) {
    GTEST_SKIP() << error.describe();
  }
  Job& job = start("slow", {.hosts = "a:1,b:1"}, {.host = {{"b", "cpu = 0.15"}}});
  double start = unix_now();
  auto named = [&] {
    fs::path file = job.folder() / "live.json";
    if (!fs::exists(file)) return false;
    nlohmann::json live = nlohmann::json::parse(read_file(file), nullptr, false);
    return live.is_object() && live.contains("slowest") && live["slowest"].is_object() &&
           live["slowest"].value("rank", -1) == 1;
  };
  EXPECT_TRUE(wait_until(named, 60)) << read_file(job.folder() / "live.json");
  record_fault({"b has 0.15 cores: named as the slowest", unix_now() - start, -1, ""});
}

}  // namespace
}  // namespace lockstep
