#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

// Runs what starts the ranks of a host (launch/job/rank_nursery.h); not for people.
int ranks(const Arguments& arguments);

}  // namespace lockstep
