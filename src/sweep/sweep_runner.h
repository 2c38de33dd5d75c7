// Runs the cells of a sweep as child processes of this program, one after the other or side by
// side, and records what became of each, in one thread with one loop. It can be killed at any
// moment and started again: what is done stays done.
#pragma once

#include <string>
#include <vector>

#include "sweep/sweep_cells.h"
#include "sweep/sweep_state.h"

namespace lockstep {

// Returns the words that run a cell: launch, or netlab run with launch in it. `resume` continues
// the cell's run. Ranks read the cell's own configuration; on real hosts, which may not see this
// disk, they read the base with overriding words.
std::vector<std::string> cell_command(const SweepConfig& config, const SweepCell& cell,
                                      bool resume);

// Returns the words that bring a cell's run here, from hosts that share nothing with this machine
// (hosts.push).
std::vector<std::string> fetch_command(const SweepConfig& config, const SweepCell& cell);

struct SweepOutcome {
  int exit_code = 0;  // of the first cell that failed; 128 + n after signal n
  int done = 0, failed = 0, left = 0;
};

// Runs all cells that are not over. SIGINT, SIGTERM and SIGHUP stop the sweep: running cells save a
// checkpoint and end; a second signal kills them. REQUIRES that the lock is held and no other
// thread runs.
SweepOutcome run_sweep(const SweepConfig& config, std::vector<SweepCell> cells);

}  // namespace lockstep
