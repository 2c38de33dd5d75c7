// Shows here what a job prints elsewhere, through connections that may break.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/jobs/find_job.h"

namespace lockstep {

struct FollowOptions {
  std::string host;  // whose output
  std::vector<std::string>
      words;           // what the first connection runs there: {"job", "output", ID, ...}
  int rank = -1;       // whose log; -1: the launcher's output, on whichever host it runs
  bool follow = true;  // until the job is over, else what there is
  std::function<void(const std::string&)> on_note;  // of connections lost and found
};

// How it ended; both empty when it was not followed to the end.
struct FollowEnd {
  std::optional<int> exit_code;  // of the job
  std::string lost;              // why its launcher counts as lost
};

// Writes the job's standard output and error to ours. A connection that breaks is made again until
// it works; a job that was resumed on another host meanwhile is followed there. Throws MachineError
// for a host that refuses, and an Error with exit code 128 + n after a signal.
FollowEnd follow_job(const FoundJob& job, const FollowOptions& options);

}  // namespace lockstep
