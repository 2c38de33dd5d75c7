// One rank as a process of this host: its own process group, its output through our hands, and a
// death that follows the launcher's.
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
  std::vector<std::string> environment;  // NAME=value, the whole of it
  std::vector<int> cores;                // pinned to these; empty: wherever the system likes
  int inherited = -1;                    // a descriptor that it keeps under the same number
  std::array<bool, 2> terminal = {false, false};  // a pseudo-terminal instead of a pipe?
  int rows = 0, columns = 0;                      // of that terminal; 0: not known
};

struct RankProcess {
  pid_t pid = -1;                    // also the number of its process group
  std::array<Descriptor, 2> output;  // what we read: standard output, standard error
  Descriptor reports;                // and what it tells its launcher (dist/rank/launcher_report.h)
};

// The rank reads nothing (/dev/null) and starts with no signal blocked or ignored.
// REQUIRES: called by the thread that stays alive as long as the rank (PR_SET_PDEATHSIG).
// The orphan killer watches it before its program runs; whoever reaps it tells the orphan killer to
// forget it. Throws MachineError when there is no process, pipe or terminal to be had or exec
// fails.
RankProcess start_rank(const RankCommand& command, OrphanKiller& killer);

}  // namespace lockstep
