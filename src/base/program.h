// Other programs of this machine, found in PATH and run to their end.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// The path of a program: itself when it holds a slash, else the first in PATH. Nothing when there
// is none that can be run.
std::optional<std::string> find_in_path(const std::string& name);

struct ProgramEnd {
  int status = 0;    // as waitpid() gives it: 0 for success
  std::string said;  // to its standard error
};

// Runs words[0] (a path, or found in PATH) and waits for it; its standard input is empty. Throws
// MachineError when it cannot be started.
ProgramEnd run_to_end(std::vector<std::string> words);

}  // namespace lockstep
