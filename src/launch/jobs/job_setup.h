// Puts a job on its hosts and starts its launcher there, as launch --detach and resume do.
#pragma once

#include <string>
#include <vector>

#include "launch/hosts/host_list.h"
#include "launch/jobs/find_job.h"
#include "launch/jobs/job_record.h"

namespace lockstep {

// Returns a new id that begins with what the job is called: "nmt-1c4f". `taken` are ids of others.
std::string new_job_id(const std::string& name, const std::vector<std::string>& taken);

// Throws ConfigError when a job that lives among `jobs`, other than `record` itself, has its run
// folder on a host of it.
void refuse_same_run(const JobRecord& record, const std::vector<FoundJob>& jobs);

// Makes a key for the job and installs it with the record on all of `hosts`, which are those of the
// record. Returns why hosts failed.
std::vector<std::string> install_job(const JobRecord& record, const std::vector<const Host*>& hosts,
                                     const RemoteOptions& remote);
// Writes the record anew on hosts that have the job's folder. Returns why hosts failed.
std::vector<std::string> rewrite_job(const JobRecord& record, const std::vector<const Host*>& hosts,
                                     const RemoteOptions& remote);

// Starts the launcher on that host, shows what it says until its ranks run, and returns 0; or the
// exit code it ended with. Throws MachineError when the host cannot be reached.
int start_job(const JobRecord& record, const Host& host, const RemoteOptions& remote);

// Notes on these hosts that the job is over, and removes the key there. Returns why hosts failed.
std::vector<std::string> end_job(const JobRecord& record, const std::vector<const Host*>& hosts,
                                 const RemoteOptions& remote);

}  // namespace lockstep
