// Runs lockstep stop: a job saves a checkpoint and ends.
#pragma once

#include "commands/command_line.h"

namespace lockstep {

int stop_job(const Arguments& arguments);

}  // namespace lockstep
