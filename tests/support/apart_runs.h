// Trains the tiny corpus on hosts that have nothing in common: the configuration names it by a path
// below the working folder, which is ~/work on each host and desk() on the control host.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/hosts_apart.h"
#include "support/tiny_runs.h"

namespace lockstep {

class ApartRuns : public TinyRuns {
 protected:
  static void SetUpTestSuite() {
    TinyRuns::SetUpTestSuite();
    if (!failure_.empty()) return;
    const fs::path desk = folder_->path() / "desk";
    fs::create_directories(desk);
    fs::copy(folder_->path() / "corpus", desk / "corpus", fs::copy_options::recursive);
    write_tiny_config(desk, "corpus");
  }

  fs::path desk() const { return folder_->path() / "desk"; }
  // The working folder of every host.
  void bring(HostsApart& hosts) const { hosts.put_all(desk(), "work"); }
  // Shell text that starts lockstep in desk(): lockstep_here("launch -H a,b -- train tiny.toml").
  std::string lockstep_here(const std::string& words) const {
    return fmt::format("cd {} && exec '{}' {}", desk().string(), LOCKSTEP_PROGRAM, words);
  }
  // Starts `lockstep launch OPTIONS -- train tiny.toml run.folder=NAME SETTINGS` on the control
  // host, one thread a rank.
  std::unique_ptr<HostProgram> launch(HostsApart& hosts, const std::string& name,
                                      const std::string& options,
                                      const std::string& settings = "") const {
    const std::string words = fmt::format(
        "launch {} --cwd '~/work' -- train tiny.toml run.folder={} {}", options, name, settings);
    return hosts.start("control", {"/bin/sh", "-c", lockstep_here(words)}, {"OMP_NUM_THREADS=1"});
  }
  static fs::path run_on(const HostsApart& hosts, const std::string& host,
                         const std::string& name) {
    return hosts.file(host, fs::path("work") / name);
  }
};

}  // namespace lockstep
