// lockstep compare: compares runs and sweeps.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

// Runs `compare RUN|SWEEP... [--out DIR]`: prints a table; with --out writes a page, figures and
// tables.
int compare(const Arguments& arguments);

}  // namespace lockstep
