// What the program loads. libtorch takes 0.3 s of a core and 100 MB to load, so commands that do
// not compute go without (src/commands/shared/computing.h).
#include <gtest/gtest.h>

#include <set>

#include "base/text.h"
#include "support/program.h"

namespace lockstep {
namespace {

// The commands of `lockstep --help`, and those that people do not type.
std::set<std::string> all_commands() {
  std::set<std::string> out{"agent", "files", "job", "notify", "probe"};
  const ProgramResult help = run_lockstep("--help");
  for (const std::string& line : split(help.output, '\n')) {
    if (line.starts_with("  ")) out.insert(std::string(split_words(line).front()));
  }
  return out;
}

// Has the loader say which files it opens for `lockstep COMMAND --help`.
bool loads_torch(const std::string& command) {
  TemporaryFolder folder;
  const fs::path said = folder.path() / "loader";
  const ProgramResult help =
      run_lockstep(command + " --help", "LD_DEBUG=files LD_DEBUG_OUTPUT=" + said.string());
  std::string loaded;
  for (const auto& entry : fs::directory_iterator(folder.path())) loaded += read_file(entry.path());
  EXPECT_NE(loaded.find("libc.so.6"), std::string::npos) << help.errors;
  return loaded.find("libtorch_cpu.so") != std::string::npos;
}

TEST(Program, LoadsTorchForCommandsThatComputeAlone) {
  const std::set<std::string> computing = {
      "average",     "checkpoint", "classify", "doctor", "evaluate", "explain",
      "export",      "launch",     "list",     "new",    "plan",     "probe",
      "score-pairs", "serve",      "sweep",    "train",  "translate"};
  const std::set<std::string> all = all_commands();
  ASSERT_GT(all.size(), 30U);
  for (const std::string& command : all) {
    EXPECT_EQ(loads_torch(command), computing.count(command) > 0) << command;
  }
}

TEST(Program, SaysWhatItsLibraryLacks) {
  TemporaryFolder folder;
  const fs::path program = folder.path() / "lockstep";
  fs::copy_file(LOCKSTEP_PROGRAM, program);
  EXPECT_EQ(run_program(program.string(), "score --help").exit_code, 0);
  const ProgramResult train = run_program(program.string(), "train some.toml");
  EXPECT_EQ(train.exit_code, 4);
  EXPECT_EQ(train.errors,
            "error: cannot load liblockstep_computing.so: this program was built without it\n"
            "  try: here scripts/setup or pip brings the whole program, on a host lockstep "
            "cluster setup\n");
  write_file(folder.path() / "liblockstep_computing.so", "no library");
  EXPECT_NE(run_program(program.string(), "train some.toml").errors.find("file too short"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep
