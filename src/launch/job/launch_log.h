// Writes the launcher's own events: a line with the time on the console, and launch.jsonl beside
// the run (docs/run-folder.md#launchjsonl) with starts, failures, hosts lost and back, and recovery
// times.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launch/job/supervisor.h"
#include "launch/processes/rank_output.h"

namespace lockstep {

class LaunchLog {
 public:
  // An empty `file` writes none. `output` must outlive this.
  LaunchLog(RankOutput& output, std::filesystem::path file, std::string run_id);

  // `host` names event.host. Events without text go to the file only.
  void note(const LaunchEvent& event, const Attempt& attempt, const std::string& host);

  // Call this once the run's folder belongs to this job: writes the events held so far, and all
  // later ones at once. Until then the file is not touched, since ranks may yet refuse the folder.
  void open();

 private:
  void write(const std::string& line);
  RankOutput& output_;
  std::filesystem::path file_;
  std::string run_id_;
  bool open_ = false, failed_ = false;
  std::vector<std::string> held_;
};

// Returns "21:30:05", local time.
std::string time_of_day();

}  // namespace lockstep
