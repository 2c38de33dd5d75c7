// The commands that compute (commands/shared/computing.h).
#pragma once

#include <string>
#include <vector>

#include "commands/shared/command_line.h"

namespace lockstep {

std::vector<std::string> computing_commands();  // their names, sorted

// Runs the command that the first word names, one of these, with the others, and returns its exit
// code. A device that failed is an error of the machine.
int run_computing(const Arguments& words);

}  // namespace lockstep
