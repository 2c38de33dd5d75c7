// Starts a job that goes on without this machine: launch --detach
// (docs/launch.md#jobs-that-go-on-without-you).
#pragma once

#include <string>
#include <vector>

#include "commands/shared/command_line.h"
#include "launch/job/launcher.h"
#include "launch/jobs/job_record.h"

namespace lockstep {

struct DetachWishes {
  std::string from;        // the host for the launcher; empty: the first
  Arguments options;       // of launch, for the launcher there
  std::string name;        // what the id begins with
  std::string run_folder;  // as the configuration says it; empty: no training
  int min_hosts = 0;       // so many are enough; 0: all
};

// Throws ConfigError when no host of the launch has that name.
void check_from(const std::string& from, const HostList& hosts);

// Puts the job on its hosts, starts its launcher and says how to reach it. Returns 0 once its ranks
// run, or the exit code that the launcher ended with. Throws ConfigError and MachineError, before
// anything is started, for hosts that cannot take part.
int launch_detached(const Launch& launch, const DetachWishes& wishes);

// Starts the launcher of a job that `hosts` have, and says how to reach it. Where it ends at once
// the job is over on all of them; its exit code is returned.
int start_and_say(const JobRecord& record, const std::vector<const Host*>& hosts,
                  const RemoteOptions& remote);

}  // namespace lockstep
