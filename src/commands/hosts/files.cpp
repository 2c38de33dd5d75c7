#include "commands/hosts/files.h"

#include <unistd.h>

#include "launch/jobs/job_record.h"
#include "launch/push/held_files.h"

namespace lockstep {

namespace {

std::string read_input() {
  std::string out, piece(1 << 16, '\0');
  while (true) {
    const ssize_t size = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (size <= 0) return out;
    out.append(piece, 0, static_cast<std::size_t>(size));
  }
}

}  // namespace

int files(const Arguments& arguments) {
  std::string folder;
  CommandLine app("Says which of the files that standard input lists a folder holds.",
                  "lockstep files");
  app.add_option("--in", folder, "the folder; ~ is this user's home")->required();
  if (!app.parse(arguments)) return kExitOk;
  std::vector<Piece> pieces;
  std::vector<std::string> paths;
  read_question(read_input(), pieces, paths);
  try {
    fmt::print("{}", answer_text(look_at_files(in_home(folder), pieces, paths)));
  } catch (const Error& error) {  // as setup_scripts.h says what is wrong with a host
    fmt::print(stderr, "lockstep: {}\n", error.what());
    return kExitMachine;
  }
  return kExitOk;
}

}  // namespace lockstep
