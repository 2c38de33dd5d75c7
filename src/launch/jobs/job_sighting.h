// What a host says of its jobs (`lockstep job list`), both written and read here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "launch/jobs/job_record.h"

namespace lockstep {

// A job as one of its hosts sees it.
struct JobSighting {
  JobRecord record;
  std::string me;               // the host's name in the record
  bool launcher_lives = false;  // here, now
  bool agent_lives = false;     // here, now: a launcher somewhere is connected to it
  // Of the run folder here; -1 and 0: it has none.
  int64_t step = -1, checkpoint = -1;  // the last step done, the newest complete checkpoint
  double live_time = 0;                // when rank 0 here wrote last, Unix seconds
  std::map<int, double> logs;          // by rank: when its log here was written last
};

struct HostSighting {
  std::string version, libtorch;
  std::string ssh_address;             // that ssh connected to; empty without ssh
  std::vector<std::string> addresses;  // of its interfaces, without loopback
  std::vector<JobSighting> jobs;
};

// What this host has to say; and as a line of JSON, and back from a host's output, where a login
// message may stand before it. host_sighting_of() throws
// MachineError for a text that to_text() did not write, as other versions may.
HostSighting look_at_jobs();
std::string to_text(const HostSighting& sighting);
HostSighting host_sighting_of(const std::string& text);

}  // namespace lockstep
