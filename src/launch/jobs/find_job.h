// Finds a job by its id, for the commands on jobs: among those that this machine started, or by
// asking the hosts that the user names.
#pragma once

#include <string>
#include <vector>

#include "launch/jobs/job_record.h"

namespace lockstep {

// How a host that was asked for its jobs answered.
struct HostWithJobs {
  const Host* host = nullptr;
  std::string error;  // why it did not answer; empty: it did
  struct Job {
    JobRecord record;
    bool launcher_lives = false;  // there, now
    bool agent_lives = false;     // there, now: a launcher somewhere is connected to it
  };
  std::vector<Job> jobs = {};
};

// Asks all hosts at once (`lockstep job list` there). `hosts` must outlive the result.
std::vector<HostWithJobs> ask_for_jobs(const HostList& hosts, const RemoteOptions& remote);

// A job, and how its hosts are reached from here.
struct FoundJob {
  JobRecord record;  // of the highest term that a host has
  HostList hosts;    // in the order of the record; all of them
  RemoteOptions remote;
  std::vector<bool> answered;  // by host
  bool lives = false;          // its launcher runs
  std::string launcher_error;  // why the launcher's host did not answer; empty: it did

  const Host& host(const std::string& name) const;  // throws MachineError for a name it lacks
  bool lost() const { return record.state != JobState::kEnded && !lives; }
};

// `id` may be the beginning of one. `hosts` are those that the user named; an empty list means
// those that this machine knows of the job, from where it was started. Throws ConfigError when no
// job or several jobs begin so, MachineError when no host answers.
FoundJob find_job(const std::string& id, const HostList& hosts, const RemoteOptions& remote);

}  // namespace lockstep
