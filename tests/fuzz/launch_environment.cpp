// The variables of launchers ("NAME=value", a line each), and Slurm's lists in them.
#include "dist/rank/launch_environment.h"

#include <map>

#include "base/text.h"
#include "fuzz.h"

FUZZ(bytes) {
  std::map<std::string, std::string> variables;
  for (const std::string& line : lockstep::split(bytes, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos) variables[line.substr(0, equals)] = line.substr(equals + 1);
  }
  lockstep::use(
      lockstep::detect_launch_environment([&](const char* name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        if (found == variables.end()) return std::nullopt;
        return found->second;
      }));
}
