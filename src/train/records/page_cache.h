// Drops what the system keeps of files in memory, as MLPerf asks for before a run.
#pragma once

#include "base/file.h"

namespace lockstep {

// Writes files out, then drops caches, inodes and names of the whole machine (Linux,
// Documentation/admin-guide/sysctl/vm.rst). MachineError, with what to do, where only root may.
void drop_page_cache(const fs::path& control = "/proc/sys/vm/drop_caches");

}  // namespace lockstep
