// lockstep launch: runs the same command as several ranks.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

// Runs `launch -n 2 -- train CONFIG ...`. Returns 0 when all ranks succeeded; throws Error with the
// exit code of the first failed rank, or with 128 + n after signal n.
int launch(const Arguments& arguments);

}  // namespace lockstep
