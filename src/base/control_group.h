// The limits that the control groups of this process set. Containers and batch systems divide a
// machine by control groups, and neither the number of cores nor MemAvailable shows such a limit.
// Both versions of the kernel's interface are read (admin-guide/cgroup-v2.rst;
// admin-guide/cgroup-v1/memory.rst and scheduler/sched-bwc.rst). Each level of the tree may set a
// limit: the lowest one applies. `root` is prepended to /proc and /sys, for tests.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

struct CoreLimit {
  double cores = 0;   // how many may be busy on average, e.g. 1.5; 0: no limit
  std::string group;  // the group that sets this limit
};
CoreLimit core_limit(const std::string& root = "");

// Memory in bytes; 0 means unknown. Each value is the smallest among the machine and the control
// groups. The page cache of files counts as free, as it does in MemAvailable.
struct UsableMemory {
  int64_t total = 0;
  int64_t free = 0;  // available without swapping
};
UsableMemory usable_memory(const std::string& root = "");

}  // namespace lockstep
