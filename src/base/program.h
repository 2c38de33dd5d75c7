// Finds other programs in PATH and runs them to completion.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// Returns the path of a program: `name` itself if it contains a slash, else the first match in
// PATH. Returns nothing when there is no executable file.
std::optional<std::string> find_in_path(const std::string& name);

struct ProgramEnd {
  int status = 0;    // as waitpid() returns it; 0: success
  std::string said;  // what it wrote to standard error
};

// Runs words[0] (a path or a name in PATH) with empty standard input and waits for it to end.
// Throws MachineError when it cannot be started.
ProgramEnd run_to_end(std::vector<std::string> words);

}  // namespace lockstep
