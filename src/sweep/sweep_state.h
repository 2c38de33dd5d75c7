// Reads a sweep's folder as earlier sweeps left it: who works in it, which cells are done.
#pragma once

#include <vector>

#include "base/file_lock.h"
#include "sweep/sweep_cells.h"

namespace lockstep {

// The lock on a sweep's folder, which is released when the process ends in any way.
class SweepLock {
 public:
  // Throws ConfigError when another sweep works in the folder.
  explicit SweepLock(const SweepFolder& folder);

 private:
  FileLock lock_;
};

// Reads the cells' states from disk, without writing. Throws ConfigError when a cell that is over
// or has a checkpoint was run with other values than the sweep now asks for.
void find_former(const SweepFolder& folder, std::vector<SweepCell>& cells);

bool has_checkpoint(const fs::path& run);  // a complete one, to --resume from

}  // namespace lockstep
