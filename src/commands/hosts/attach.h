// Runs lockstep attach: a job's output from now on, here.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int attach(const Arguments& arguments);

}  // namespace lockstep
