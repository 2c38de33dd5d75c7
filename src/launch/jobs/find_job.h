// Finds a job by its id, for the commands on jobs: among those that this machine started, or by
// asking the hosts that the user names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/jobs/job_record.h"
#include "launch/jobs/job_sighting.h"

namespace lockstep {

// How a host that was asked for its jobs answered.
struct HostWithJobs {
  const Host* host = nullptr;
  std::string error;  // why it did not answer; empty: it did
  HostSighting says = {};
};

// Asks all hosts at once (`lockstep job list` there). `hosts` must outlive the result.
std::vector<HostWithJobs> ask_for_jobs(const HostList& hosts, const RemoteOptions& remote);

// A job, and how its hosts are reached from here.
struct FoundJob {
  // A host of the job, as the record has them, and what it says of the job.
  struct Place {
    Host host;
    std::string error;               // why it did not answer; empty: it did
    std::optional<JobSighting> saw;  // nothing: it did not answer, or has no such job
  };
  JobRecord record;  // of the highest term that a host has, from the launcher's host if it answers
  RemoteOptions remote;
  std::vector<Place> places;  // by host of the record

  const Place& place(const std::string& name) const;  // throws MachineError for a name it lacks
  const Place& launcher() const { return place(record.launcher); }
  bool ended() const { return record.state == JobState::kEnded; }
  // Whether a launcher runs, as its host or an agent that it has connected says.
  bool lives() const;
  std::string state() const;  // "starting", "running", "ended: 0", "lost"
};

// All jobs of hosts that were asked, by id. A host of a job that is none of those asked is reached
// by its ssh name.
std::vector<FoundJob> jobs_of(const std::vector<HostWithJobs>& asked, const RemoteOptions& remote);

// `id` may be the beginning of one. `hosts` are those that the user named; an empty list means
// those that this machine knows of the job, from where it was started. Throws ConfigError when no
// job or several jobs begin so, MachineError when no host answers.
FoundJob find_job(const std::string& id, const HostList& hosts, const RemoteOptions& remote);

}  // namespace lockstep
