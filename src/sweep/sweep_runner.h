// Runs the cells of a sweep as child processes of this program, one after the other or side by
// side, and keeps what became of each. One thread, one loop. Killed at any moment it can be started
// again: what is done stays done.
#pragma once

#include <string>
#include <vector>

#include "sweep/sweep_cells.h"
#include "sweep/sweep_state.h"

namespace lockstep {

// The words that run a cell: launch, or netlab run with launch in it. `resume`: go on with its run.
// Ranks read the cell's own configuration; on real hosts, which may not see this disk, the base
// with words over it.
std::vector<std::string> cell_command(const SweepConfig& config, const SweepCell& cell,
                                      bool resume);

struct SweepOutcome {
  int exit_code = 0;  // that of the first cell that failed; 128 + n after signal n
  int done = 0, failed = 0, left = 0;
};

// Runs all cells that are not over. SIGINT, SIGTERM and SIGHUP stop it: running cells save a
// checkpoint and end; a second signal kills them. REQUIRES: the lock is held; no other thread runs.
SweepOutcome run_sweep(const SweepConfig& config, std::vector<SweepCell> cells);

}  // namespace lockstep
