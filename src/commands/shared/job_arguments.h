// What the commands on jobs have in common: which job, and how its hosts are reached.
#pragma once

#include <string>

#include "commands/shared/command_line.h"
#include "commands/shared/host_arguments.h"
#include "launch/jobs/find_job.h"

namespace lockstep {

struct JobArguments {
  std::string id;
  HostArguments hosts;  // none: those that this machine knows of the job
};

void add_job_options(CommandLine& app, JobArguments& arguments);
FoundJob find_job(const JobArguments& arguments);  // throws as find_job() of an id does

// Returns the error for a job without a launcher, with what to do.
MachineError lost_job(const FoundJob& job, const std::string& why);

// "runs/nmt/checkpoints/step_1200 (a, b)", the newest checkpoint that hosts of the job said they
// have; empty when there is none.
std::string newest_checkpoint_of(const FoundJob& job);

}  // namespace lockstep
