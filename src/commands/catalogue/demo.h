// lockstep demo: shows the main job on real input, from nothing to a translation.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

// Runs `demo [RUN_FOLDER] [key=value ...]`: each step is this program again, as a person would
// start it. Returns the exit code of the first step that fails. Throws ConfigError, before anything
// is fetched, when the run folder is taken, and MachineError when the disk or the memory is too
// small.
int demo(const Arguments& arguments);

}  // namespace lockstep
