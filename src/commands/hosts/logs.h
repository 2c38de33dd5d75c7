// Runs lockstep logs: what a job's launcher or one of its ranks printed.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int logs(const Arguments& arguments);

}  // namespace lockstep
