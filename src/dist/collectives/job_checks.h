// Whether a launcher started the ranks as a person meant it.
#pragma once

#include <string>

#include "dist/rank/launch_environment.h"

namespace lockstep {

class World;

// Throws ConfigError on every rank when the ranks run on another number of machines than expected
// (0: any). A launcher that did not understand its list of hosts starts all ranks on one, and
// nothing else fails. Called by all ranks.
void require_machines(World& world, int expected);

// A variable (NAME=value) of a launcher that starts many processes, for a process that is the only
// rank: under the mpirun of another MPI than its variables are of, each process is. Empty: none.
std::string sign_of_lone_rank(const GetVariable& get);

}  // namespace lockstep
