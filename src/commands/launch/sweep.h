// lockstep sweep: makes many runs from one file.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

// Runs `sweep FILE.toml [key=value ...] [--dry-run]`. Returns 0 when all cells are done, else the
// exit code of the first that failed, or 128 + n after signal n.
int sweep(const Arguments& arguments);

}  // namespace lockstep
