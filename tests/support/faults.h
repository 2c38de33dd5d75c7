// Trains on two virtual hosts that share nothing, two ranks each, started by `lockstep launch`, and
// injects faults: signals, cuts, lost power. Measures the time from a fault to the launcher's first
// message about it and to the next step.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "support/apart_runs.h"

namespace lockstep {

inline double unix_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Polls until `done` or until the time is over; returns whether it was done.
inline bool wait_until(const std::function<bool()>& done, double seconds) {
  double end = unix_now() + seconds;
  while (!done()) {
    if (unix_now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

// Returns the complete lines of a JSON-lines file so far, but for the first `passed_over`.
inline std::vector<nlohmann::json> json_lines(const fs::path& file, std::size_t passed_over = 0) {
  std::vector<nlohmann::json> out;
  if (!fs::exists(file)) return out;
  const std::vector<std::string> lines = read_lines(file);
  for (std::size_t i = passed_over; i < lines.size(); ++i) {
    nlohmann::json json = nlohmann::json::parse(lines[i], nullptr, false);
    if (json.is_object()) out.push_back(json);
  }
  return out;
}

struct JobOptions {
  std::string hosts = "a:2,b:2";
  std::string launch;  // further words for `lockstep launch`
  std::string train;   // further words for `train`
  std::string config = "tiny.toml";
  std::vector<std::string> environment;  // of the launcher, NAME=VALUE, besides one thread a rank
};

// The lockstep processes of hosts. Those of a host that is off are none.
class HostPrograms {
 public:
  explicit HostPrograms(HostsApart& hosts) : hosts_(hosts) {}

  void signal_rank(int rank, const std::string& signal) {
    if (!try_signal_rank(rank, signal)) FAIL() << fmt::format("rank {} does not run", rank);
  }
  // Returns whether the rank runs.
  bool try_signal_rank(int rank, const std::string& signal) {
    // A host that went and came back may have other ranks than before.
    for (const std::string& host : hosts_.names()) {
      for (int process : processes_in(host, " train ")) {
        const auto [code, text] = hosts_.run(
            host, fmt::format("tr '\\0' '\\n' </proc/{0}/environ | grep -qx LOCKSTEP_RANK={1} && "
                              "kill -{2} {0}",
                              process, rank, signal));
        if (code == 0) return true;
      }
    }
    return false;
  }
  // Returns a host's lockstep processes: ranks, agents, orphan killers.
  std::vector<int> processes_in(const std::string& host, const std::string& of = "") {
    // Processes are found by what they run; the shell that looks is not lockstep. Its messages
    // about processes that end meanwhile are dropped.
    std::string script = fmt::format(
        "exec 2>/dev/null; for p in /proc/[0-9]*; do [ \"$(readlink $p/exe)\" = '{}' ] || "
        "continue; "
        "tr '\\0' ' ' <$p/cmdline | grep -q '{}' && echo ${{p#/proc/}}; done; true",
        HostsApart::kProgram, of);
    std::vector<int> out;
    try {
      for (std::string_view word : split_words(hosts_.run(host, script).second)) {
        out.push_back(std::stoi(std::string(word)));
      }
    } catch (const MachineError&) {  // it is off
    }
    return out;
  }

 private:
  HostsApart& hosts_;
};

class Job : public HostPrograms {
 public:
  // `desk` is as in ApartRuns; the hosts have it as ~/work, and the run as ~/work/NAME.
  Job(HostsApart& hosts, const fs::path& desk, const std::string& name, const JobOptions& options)
      : HostPrograms(hosts),
        run_(hosts.file("a", "work/" + name)),
        events_(desk / name / "launch.jsonl") {
    std::string command = fmt::format(
        "cd {} && exec '{}' launch -H {} --cwd '~/work' {} -- train {} run.folder={} "
        "training.steps=1000000 checkpoint.every=10 {}",
        desk.string(), LOCKSTEP_PROGRAM, options.hosts, options.launch, options.config, name,
        options.train);
    std::vector<std::string> environment = options.environment;
    environment.push_back("OMP_NUM_THREADS=1");
    launcher_ = hosts.start("control", {"/bin/sh", "-c", command}, std::move(environment));
  }

  HostProgram& launcher() { return *launcher_; }
  std::string output() const { return launcher_->output(); }
  const fs::path& folder() const { return run_; }  // as host a has it

  std::vector<nlohmann::json> steps_since(double time) const {
    std::vector<nlohmann::json> out;
    for (const nlohmann::json& line : json_lines(run_ / "metrics.jsonl")) {
      if (line.value("event", "") == "step" && line.value("time", 0.0) > time) out.push_back(line);
    }
    return out;
  }
  std::vector<nlohmann::json> events(const std::string& name, double since = 0) const {
    std::vector<nlohmann::json> out;
    for (const nlohmann::json& line : json_lines(events_)) {
      bool wanted = name.empty() || line.value("event", "") == name;
      if (wanted && line.value("time", 0.0) > since) out.push_back(line);
    }
    return out;
  }
  int attempt() const { return of_newest_start("attempt"); }
  int ranks() const { return of_newest_start("ranks"); }
  // Waits until the job is training and has a checkpoint to resume from.
  bool wait_for_steps(int steps, double seconds = 60) const {
    return wait_until(
        [&] {
          return steps_since(0).size() >= static_cast<std::size_t>(steps) &&
                 fs::exists(run_ / "checkpoints") && !fs::is_empty(run_ / "checkpoints");
        },
        seconds);
  }

 private:
  int of_newest_start(const char* what) const {
    const auto starts = events("start");
    return starts.empty() ? -1 : starts.back().value(what, -1);
  }

  fs::path run_, events_;
  std::unique_ptr<HostProgram> launcher_;
};

// What one fault cost: a line of the table in docs/launch.md#what-a-failure-costs.
struct FaultRecord {
  std::string event;
  double detection = -1, next_step = -1;  // seconds since the fault
  std::string said;                       // the launcher's message about it
};

inline void record_fault(const FaultRecord& record) {
  std::printf("[ %s: detected after %.2f s, next step after %.2f s ]\n", record.event.c_str(),
              record.detection, record.next_step);
  const char* file = std::getenv("LOCKSTEP_RELIABILITY");
  if (file == nullptr) return;
  std::ofstream(file, std::ios::app) << nlohmann::ordered_json{{"event", record.event},
                                                               {"detection", record.detection},
                                                               {"next_step", record.next_step},
                                                               {"said", record.said}}
                                            .dump()
                                     << "\n";
}

}  // namespace lockstep
