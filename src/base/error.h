// The error types of lockstep. Each has one documented exit code (docs/errors.md). Code throws an
// error where it detects the problem, callers add context with `add_context`, and main.cpp alone
// catches it. Programming errors (TORCH_CHECK, assert) are not of these types and exit with 70.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

enum ExitCode : int {
  kExitOk = 0,
  kExitConfig = 2,     // the command line or a configuration is wrong; nothing was done
  kExitData = 3,       // an input file is missing, damaged or unusable
  kExitMachine = 4,    // a device, peer, port or disk failed; the launcher may restart
  kExitDiverged = 5,   // training diverged, e.g. the loss is not finite
  kExitInternal = 70,  // a bug of lockstep
};                     // a process that a signal stopped exits with 128 + its number

class Error : public std::runtime_error {
 public:
  Error(int exit_code, std::string message)
      : std::runtime_error(message), exit_code_(exit_code), text_(std::move(message)) {}

  int exit_code() const { return exit_code_; }

  // Adds a "while: ..." line that says what was being done. The innermost comes first.
  Error& add_context(std::string what) {
    context_.push_back(std::move(what));
    return *this;
  }
  Error& set_cause(std::string cause) {
    cause_ = std::move(cause);
    return *this;
  }
  Error& set_advice(std::string advice) {
    advice_ = std::move(advice);
    return *this;
  }

  // Returns the whole text for the user: the message, then the lines "while", "because" and "try".
  std::string describe() const {
    std::string out = text_;
    for (const std::string& c : context_) out += "\n  while: " + c;
    if (!cause_.empty()) out += "\n  because: " + cause_;
    if (!advice_.empty()) out += "\n  try: " + advice_;
    return out;
  }

 private:
  int exit_code_;
  std::string text_, cause_, advice_;
  std::vector<std::string> context_;
};

// The four error types. Use: throw DataError("{}:{}: {} columns, expected 2", path, line, n);
template <int Code>
class ErrorOf : public Error {
 public:
  template <typename... Args>
  explicit ErrorOf(fmt::format_string<Args...> format, Args&&... args)
      : Error(Code, fmt::format(format, std::forward<Args>(args)...)) {}
};
using ConfigError = ErrorOf<kExitConfig>;
using DataError = ErrorOf<kExitData>;
using MachineError = ErrorOf<kExitMachine>;
using DivergedError = ErrorOf<kExitDiverged>;

}  // namespace lockstep
