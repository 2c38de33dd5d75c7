// lockstep probe: answers what doctor and plan ask a host; not meant for people (launch/probe.h).
#pragma once

#include "commands/arguments.h"

namespace lockstep {

int probe(const Arguments& arguments);

}  // namespace lockstep
