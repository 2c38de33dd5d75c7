// Runs lockstep job: what ssh starts on a host of a job, not for people (launch/jobs/job_host.h).
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int job_on_host(const Arguments& arguments);

}  // namespace lockstep
