#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

// Runs what `lockstep launch` starts on each host (launch/job/agent.h); not for people.
int agent(const Arguments& arguments);

}  // namespace lockstep
