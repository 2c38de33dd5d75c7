// A sweep's folder as earlier sweeps left it: who works in it, which cells are done.
#pragma once

#include <vector>

#include "base/descriptor.h"
#include "sweep/sweep_cells.h"

namespace lockstep {

// The lock on a sweep's folder; gone with the process, however it ends.
class SweepLock {
 public:
  // ConfigError when another sweep works in the folder.
  explicit SweepLock(const SweepFolder& folder);

 private:
  Descriptor file_;
};

// How the cells stand on disk; nothing is written. Throws ConfigError when a cell was run with
// other values than the sweep now asks for.
void find_former(const SweepFolder& folder, std::vector<SweepCell>& cells);

bool has_checkpoint(const fs::path& run);  // a complete one, that --resume could go on from

}  // namespace lockstep
