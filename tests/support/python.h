// Runs the Python scripts of tests/parity: reference implementations that our results are held to.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/file.h"

namespace lockstep {

// True when `module` can be imported by the Python of the build.
inline bool python_has(const std::string& module) {
  return std::system(
             fmt::format("'{}' -c 'import {}' >/dev/null 2>&1", LOCKSTEP_PYTHON, module).c_str()) ==
         0;
}

struct PythonResult {
  int status = 0;  // 0: the script ended well
  std::string output, errors;
};

// Runs tests/parity/`script` with `arguments` (quoted for the shell by the caller where needed);
// ended after a minute at the latest.
inline PythonResult run_python(const std::string& script, const std::string& arguments) {
  TemporaryFolder folder;
  std::string output = (folder.path() / "out").string(), errors = (folder.path() / "err").string();
  std::string command =
      fmt::format("timeout 60 '{}' '{}/tests/parity/{}' {} >'{}' 2>'{}'", LOCKSTEP_PYTHON,
                  LOCKSTEP_SOURCE, script, arguments, output, errors);
  PythonResult result;
  result.status = std::system(command.c_str());
  result.output = read_file(output);
  result.errors = read_file(errors);
  return result;
}

}  // namespace lockstep
