// Runs the Python scripts of tests/parity, reference implementations for our results.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "support/limits.h"

namespace lockstep {

// Returns whether the Python of the build has a module. It is not imported: that takes seconds.
inline bool python_has(const std::string& module) {
  return std::system(fmt::format("'{}' -c 'import importlib.util as u; assert u.find_spec(\"{}\")' "
                                 ">/dev/null 2>&1",
                                 LOCKSTEP_PYTHON, module)
                         .c_str()) == 0;
}

struct PythonResult {
  int status = 0;  // 0: the script ended well
  std::string output, errors;
};

// Runs Python with `arguments`, which the caller quotes for the shell where needed, and ends it
// after kCommandSeconds.
inline PythonResult run_python(const std::string& arguments) {
  TemporaryFolder folder;
  std::string output = (folder.path() / "out").string(), errors = (folder.path() / "err").string();
  std::string command = fmt::format("timeout {} '{}' {} >'{}' 2>'{}'", kCommandSeconds,
                                    LOCKSTEP_PYTHON, arguments, output, errors);
  PythonResult result;
  result.status = std::system(command.c_str());
  result.output = read_file(output);
  result.errors = read_file(errors);
  return result;
}

// Runs tests/parity/`script` in the same way.
inline PythonResult run_parity_script(const std::string& script, const std::string& arguments) {
  return run_python(fmt::format("'{}/tests/parity/{}' {}", LOCKSTEP_SOURCE, script, arguments));
}

}  // namespace lockstep
