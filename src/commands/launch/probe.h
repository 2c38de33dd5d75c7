// lockstep probe: answers what doctor and plan ask a host; not meant for people
// (launch/probe/probe.h).
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int probe(const Arguments& arguments);

}  // namespace lockstep
