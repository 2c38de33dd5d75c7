// lockstep netlab: runs virtual hosts on this machine, and a network between them with delay, rate,
// loss and cuts.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

// Runs `netlab run LAB -- COMMAND`, `up LAB`, `set`, `exec HOST -- COMMAND`, `list` or `connect`.
// Returns the command's exit code, 128 + n after signal n; throws Error.
int netlab(const Arguments& arguments);

}  // namespace lockstep
