// lockstep checkpoint list|show|verify|diff|prune: looks after the checkpoints of runs.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int checkpoint(const Arguments& arguments);

}  // namespace lockstep
