// Starts one rank as a process of this host, in its own process group, with its output through us,
// and killed when the launcher dies.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

#include "launch/processes/descriptor.h"
#include "launch/processes/orphan_killer.h"

namespace lockstep {

struct RankCommand {
  std::vector<std::string> words;        // program (a path, see find_program) and its arguments
  std::vector<std::string> environment;  // NAME=value, all of it
  std::vector<int> cores;                // pinned to these; empty: not pinned
  int inherited = -1;                    // a descriptor that it keeps under the same number
  std::array<bool, 2> terminal = {false, false};  // use a pseudo-terminal instead of a pipe?
  int rows = 0, columns = 0;                      // of that terminal; 0: not known
};

struct RankProcess {
  pid_t pid = -1;                    // also its process group
  std::array<Descriptor, 2> output;  // what we read: standard output, standard error
  Descriptor reports;                // its reports to its launcher (dist/rank/launcher_report.h)
};

// The rank reads /dev/null and starts with no signal blocked or ignored. The orphan killer watches
// it before its program runs; whoever reaps it must tell the orphan killer to forget it. REQUIRES
// that the calling thread lives as long as the rank (PR_SET_PDEATHSIG). Throws MachineError when no
// process, pipe or terminal is available or exec fails.
RankProcess start_rank(const RankCommand& command, OrphanKiller& killer);

// The streams of a rank: our ends, and its own (standard output, standard error, reports).
struct RankStreams {
  RankProcess process;  // without a process yet
  std::array<Descriptor, 3> theirs;
};
RankStreams open_streams(const RankCommand& command);

struct ProgramStart {
  std::vector<std::string> words, environment;
  std::vector<int> cores = {};  // as in RankCommand
  int output = -1, errors = -1;
  std::vector<int> inherited = {};  // descriptors that it keeps under the same numbers
};
// Starts a program in a process group of its own, as start_rank() does. `killer` may be null.
pid_t start_program(const ProgramStart& start, OrphanKiller* killer);

}  // namespace lockstep
