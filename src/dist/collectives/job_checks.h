// Checks that a launcher started the ranks as the user meant it.
#pragma once

#include <string>

#include "dist/rank/launch_environment.h"

namespace lockstep {

class World;

// Throws ConfigError on every rank when the ranks run on another number of machines than expected
// (0: any). A launcher that did not understand its list of hosts starts all ranks on one, and
// nothing else fails. All ranks call it.
void require_machines(World& world, int expected);

// Called by a process that is the only rank: returns a variable (NAME=value) of a launcher that
// starts many processes, or nothing. Under an mpirun whose variables lockstep does not read, every
// process takes itself for the only rank.
std::string sign_of_lone_rank(const GetVariable& get);

}  // namespace lockstep
