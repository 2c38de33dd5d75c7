// lockstep COMMAND ARGUMENTS: finds the command and runs it.
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

#include "base/error.h"
#include "commands/catalogue/catalogue.h"
#include "commands/shared/computing.h"
#include "commands/shared/exit_code.h"
#include "train/folder/run_folder.h"

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

// Libraries look for their files by the current folder; MKL ends the process in words that name
// libtorch where there is none.
void require_current_folder() {
  char here[4096];
  if (::getcwd(here, sizeof here) != nullptr || errno != ENOENT) return;
  MachineError error("the current folder was removed after this shell went there");
  error.set_advice("cd to it again, if it is there anew, or to another");
  throw error;
}

int run(const Arguments& words) {
  require_current_folder();
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    print_usage();
    return words.empty() ? kExitConfig : kExitOk;
  }
  if (words[0] == "--version") {
    load_computing();  // who asks on another machine asks whether it is whole, too
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

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file at the limit of its size is an error, as a full disk is
  return leave(exit_code_of([&] { return run({argv + 1, argv + argc}); }));
}
