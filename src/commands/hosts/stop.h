// Runs lockstep stop: a job saves a checkpoint and ends.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int stop_job(const Arguments& arguments);

}  // namespace lockstep
