// lockstep COMMAND ARGUMENTS: finds the command, and turns what it throws into a message and an
// exit code (docs/errors.md).
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "commands/catalogue/catalogue.h"
#include "train/config/run_folder.h"

namespace {

using namespace lockstep;

void print_usage() {
  fmt::print("lockstep {}: data-parallel training across ordinary machines\n\n", LOCKSTEP_VERSION);
  fmt::print("usage: lockstep COMMAND ...      lockstep COMMAND --help explains one\n\n");
  for (const auto& command : commands().items()) {
    if (command.help.empty()) continue;  // not for people
    fmt::print("  {:<11} {}\n", command.name, command.help);
  }
}

int run(const Arguments& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    print_usage();
    return words.empty() ? kExitConfig : kExitOk;
  }
  if (words[0] == "--version") {
    fmt::print("{}", version_text());
    return kExitOk;
  }
  return commands().get(words[0])({words.begin() + 1, words.end()});
}

// Ends the process without the destructors of libtorch's tables of operators, which take as long as
// to set them up: a tenth of a second of a core, before which a launcher cannot start the next
// rank. Sanitizers report at a normal end.
int leave(int exit_code) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  std::fflush(nullptr);
  ::_exit(exit_code);
#endif
  return exit_code;
}

int report(const Error& error) {
  end_progress();
  fmt::print(stderr, "error: {}\n", error.describe());
  return error.exit_code();
}

int run_and_report(const Arguments& words) {
  try {
    return run(words);
  } catch (const Error& error) {
    return report(error);
  } catch (const std::filesystem::filesystem_error& error) {  // which names the file
    return report(MachineError("{}", error.what()));
  } catch (const std::exception& error) {
    end_progress();
    fmt::print(stderr, "internal error: {}\nthis is a bug of lockstep; please report it\n",
               error.what());
    return kExitInternal;
  }
}

}  // namespace

int main(int argc, char** argv) { return leave(run_and_report({argv + 1, argv + argc})); }
