// Runs the built program as a user would, for tests that need real processes.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "support/limits.h"

namespace lockstep {

struct ProgramResult {
  int exit_code = 0;
  std::string output, errors;
};

// Runs `PROGRAM ARGUMENTS` through the shell, and ends it after `seconds` (exit code 124). `before`
// is put in front, for example "OMP_NUM_THREADS=1".
inline ProgramResult run_program(const std::string& program, const std::string& arguments,
                                 const std::string& before = "", int seconds = kCommandSeconds) {
  TemporaryFolder folder;
  std::string output = (folder.path() / "out").string(), errors = (folder.path() / "err").string();
  std::string command = fmt::format("{} timeout -k 5 {} '{}' {} >'{}' 2>'{}' </dev/null", before,
                                    seconds, program, arguments, output, errors);
  int status = std::system(command.c_str());
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .output = read_file(output),
          .errors = read_file(errors)};
}

// Runs the built lockstep in the same way.
inline ProgramResult run_lockstep(const std::string& arguments, const std::string& before = "",
                                  int seconds = kCommandSeconds) {
  return run_program(LOCKSTEP_PROGRAM, arguments, before, seconds);
}

// Returns the lines of metrics.jsonl of one kind: "step", "evaluation", ... A last line that is
// being written has no end yet and is left out.
inline std::vector<nlohmann::json> metrics_of(const fs::path& run, const std::string& event) {
  std::vector<nlohmann::json> out;
  const std::string text = read_file(run / "metrics.jsonl");
  std::istringstream lines(text.substr(0, text.rfind('\n') + 1));
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json json = nlohmann::json::parse(line);
    if (json.at("event") == event) out.push_back(json);
  }
  return out;
}

}  // namespace lockstep
