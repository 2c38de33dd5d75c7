// Drops the system's page cache, as MLPerf asks for before a run.
#pragma once

#include "base/file.h"

namespace lockstep {

// Writes files out, then drops caches, inodes and directory entries of the whole machine (Linux,
// Documentation/admin-guide/sysctl/vm.rst). Throws MachineError, with what to do, where only root
// may do it.
void drop_page_cache(const fs::path& control = "/proc/sys/vm/drop_caches");

}  // namespace lockstep
