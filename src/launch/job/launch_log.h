// The launcher's own words: a line with the time on the console, and launch.jsonl beside the run
// (docs/run-folder.md#launchjsonl): starts, failures, hosts lost and back, how long recovery took.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launch/job/supervisor.h"
#include "launch/processes/rank_output.h"

namespace lockstep {

class LaunchLog {
 public:
  // `file` empty: none is written. `output` must outlive this.
  LaunchLog(RankOutput& output, std::filesystem::path file, std::string run_id);

  // `host`: the name of event.host. Events without text go to the file alone.
  void note(const LaunchEvent& event, const Attempt& attempt, const std::string& host);

  // The run's folder belongs to this job: what was noted so far is written, and all that follows at
  // once. Until then nothing is: ranks may yet refuse the folder.
  void open();

 private:
  void write(const std::string& line);
  RankOutput& output_;
  std::filesystem::path file_;
  std::string run_id_;
  bool open_ = false, failed_ = false;
  std::vector<std::string> held_;
};

// "21:30:05", local time.
std::string time_of_day();

}  // namespace lockstep
