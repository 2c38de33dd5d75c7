// What must hold of a training that faults were done to (support/chaos_faults.h): it goes on from
// the newest whole checkpoint or a later step, and ends like one to which nothing was done.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/chaos_faults.h"
#include "train/folder/checkpoint_folder.h"

namespace lockstep {

class ChaosRuns : public ChaosHosts {
 protected:
  using ChaosHosts::ChaosHosts;

  // The newest step of a whole checkpoint, 0 without one: on any host that keeps it, or on each
  // where the job goes on with one of them.
  int64_t safe_step(const std::set<std::string>& spoiled = {}) const {
    std::vector<int64_t> newest;
    for (const std::string& host : hosts_->names()) {
      newest.push_back(0);
      if (spoiled.contains(host)) continue;
      for (const fs::path& one : all_checkpoints(checkpoints_of(host))) {
        if (!checkpoint_damage(one).empty()) continue;  // or removed for a newer one meanwhile
        newest.back() = std::max(newest.back(), checkpoint_step(one));
      }
    }
    return training_.goes_on_alone ? std::ranges::min(newest) : std::ranges::max(newest);
  }
  // Lines of a host's metrics.jsonl, behind its first ones. Rank 0 may have been on either.
  std::vector<nlohmann::json> metrics_of_host(const std::string& host,
                                              std::size_t passed_over = 0) {
    const std::vector<std::string>& lost = lost_[host];
    std::vector<nlohmann::json> out;
    for (std::size_t i = passed_over; i < lost.size(); ++i) {
      nlohmann::json json = nlohmann::json::parse(lost[i], nullptr, false);
      if (json.is_object()) out.push_back(json);
    }
    const std::size_t rest = passed_over > lost.size() ? passed_over - lost.size() : 0;
    for (nlohmann::json& line : json_lines(metrics_file(host), rest)) out.push_back(line);
    return out;
  }
  using Marks = std::map<std::string, std::size_t>;  // lines by host
  Marks marks() {
    Marks out;
    for (const std::string& host : hosts_->names()) {
      out[host] = lost_[host].size() + raw_metrics(host).size();
    }
    return out;
  }

  // Does the faults, the second `between` seconds after the first. Calls `before` before each.
  static void work(const std::vector<Fault>& faults, double between,
                   const std::function<void(const Fault&)>& before) {
    double now = 0;  // seconds since the first began
    const auto wait_for = [&](double then) {
      if (then > now) std::this_thread::sleep_for(std::chrono::duration<double>(then - now));
      now = std::max(now, then);
    };
    std::multimap<double, const Fault*> ends;
    const auto end_until = [&](double then) {
      while (!ends.empty() && ends.begin()->first <= then) {
        wait_for(ends.begin()->first);
        ends.begin()->second->end();
        ends.erase(ends.begin());
      }
    };
    for (std::size_t i = 0; i < faults.size(); ++i) {
      const double then = static_cast<double>(i) * between;
      end_until(then);
      wait_for(then);
      before(faults[i]);
      faults[i].begin();
      ends.emplace(then + faults[i].lasts, &faults[i]);
    }
    end_until(1e9);
  }
  static std::string text_of(const std::vector<Fault>& faults, double between) {
    std::string out = faults[0].text;
    if (faults.size() > 1) out += fmt::format("; after {:.1f} s {}", between, faults[1].text);
    return out;
  }
  static std::set<std::string> spoiled_by(const std::vector<Fault>& faults) {
    std::set<std::string> out;
    for (const Fault& fault : faults) out.insert(fault.spoils.begin(), fault.spoils.end());
    return out;
  }

  // What the lines of metrics.jsonl behind `from` say. Lines are told by their number, since their
  // times follow a clock that jumps.
  struct Progress {
    int steps = 0;            // since the last resumption, of the host with most
    int64_t first_step = -1;  // of the last resumption or new start; -1: there was none
  };
  // With `resumed`, steps count once there was one.
  Progress progress(Marks& from, bool resumed) {
    Progress out;
    for (const std::string& host : hosts_->names()) {
      int steps = 0;
      bool counts = !resumed;
      for (const nlohmann::json& line : metrics_of_host(host, from[host])) {
        const std::string event = line.value("event", "");
        if (event == "resume" || event == "start") {
          out.first_step = line.value("first_step", int64_t{-1});
          counts = true;
          steps = 0;
        }
        if (event == "step" && counts) ++steps;
      }
      out.steps = std::max(out.steps, steps);
    }
    return out;
  }

  // Compares what was trained to step `last` with a run to which nothing was done.
  void expect_undisturbed(int64_t last) {
    std::set<int64_t> steps;
    for (const std::string& host : hosts_->names()) {
      std::vector<int64_t> counting;  // a step that was taken again is that of its last line
      for (const nlohmann::json& line : metrics_of_host(host)) {
        if (line.value("event", "") != "step") continue;
        const int64_t step = line.value("step", int64_t{0});
        while (!counting.empty() && counting.back() >= step) counting.pop_back();
        counting.push_back(step);
      }
      steps.insert(counting.begin(), counting.end());
    }
    ASSERT_EQ(static_cast<int64_t>(steps.size()), last);
    EXPECT_EQ(*steps.begin(), 1);
    EXPECT_EQ(*steps.rbegin(), last);

    Job undisturbed(
        *hosts_, desk(), "undisturbed",
        {.launch = "--interface eth0",
         .train = fmt::format("training.steps={} checkpoint.every=0 {}", last, training_.words),
         .config = training_.config});
    constexpr int64_t kSlowStepsAMinute = 2000;  // beside other programs
    const std::chrono::minutes limit(30 + last / kSlowStepsAMinute);
    ASSERT_EQ(undisturbed.launcher().wait(limit), 0) << undisturbed.output();
    const auto file_of = [&](const char* run, const char* name) {
      return run_on(*hosts_, "a", run) / "checkpoints" / checkpoint_name(last) / name;
    };
    for (const char* file : {"weights.safetensors", "optimizer.safetensors"}) {
      EXPECT_EQ(differences(file_of("run", file), file_of("undisturbed", file)), "") << file;
    }
  }
};

}  // namespace lockstep
