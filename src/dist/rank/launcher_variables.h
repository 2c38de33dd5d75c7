// Reads the variables by which launchers tell a process its rank, each launcher's by itself;
// launch_environment.h chooses among them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dist/rank/launch_environment.h"

namespace lockstep {

struct LauncherVariable {
  std::string name, value;
};

// What one launcher's variables say. Complete ones have all four numbers.
struct SeenLauncher {
  std::string launcher, rank_name, size_name, missing = "", why_missing = "", run_id = "";
  int rank = 0, size = 1, local_rank = 0, local_size = 1, attempt = 0;
  bool complete() const { return missing.empty(); }
};

// Returns the first of these variables that is set and not empty.
std::optional<LauncherVariable> find_variable(const GetVariable& get,
                                              const std::vector<const char*>& names);

// Throws ConfigError for what is no whole number from `least` to `most`.
int number_of(const LauncherVariable& variable, int least, int most);

bool is_loopback(const std::string& address);

// Returns every launcher of which there is a variable, those that take precedence first. Throws
// ConfigError for values that are no numbers or out of range.
std::vector<SeenLauncher> read_launchers(const GetVariable& get);

}  // namespace lockstep
