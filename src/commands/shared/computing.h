// Runs the commands that compute: train, translate, launch and their like. They are a library of
// their own, since libtorch, which they need, takes 0.3 s of a core and 100 MB to load: a process
// that waits for hosts, shows a run or looks after a job is spared that.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

// Takes the name of a command and the words after it, and returns the exit code.
using ComputingCommands = int (*)(const Arguments& words);

// Loads the library unless this process has it. Throws MachineError where it cannot be loaded.
ComputingCommands load_computing();

// Has `commands` in the library's place: of a program that links them itself.
void set_computing(ComputingCommands commands);

}  // namespace lockstep
