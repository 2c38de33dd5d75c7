// lockstep compare: runs and sweeps side by side.
#pragma once

#include "commands/command_line.h"

namespace lockstep {

// `compare RUN|SWEEP... [--out DIR]`: prints a table; with --out writes page, figures, tables.
int compare(const Arguments& arguments);

}  // namespace lockstep
