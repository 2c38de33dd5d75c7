// Runs lockstep resume: a job goes on from its newest checkpoint, on the hosts that answer.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int resume_job(const Arguments& arguments);

}  // namespace lockstep
