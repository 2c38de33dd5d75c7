// What the control groups of this process leave it: containers and batch systems share a machine
// out by them, and neither the number of cores nor MemAvailable tells. Both versions of the
// kernel's interface are read (admin-guide/cgroup-v2.rst; admin-guide/cgroup-v1/memory.rst and
// scheduler/sched-bwc.rst). A limit may stand at any level of the tree: the narrowest counts.
// `root` stands in front of /proc and /sys, for tests.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

struct CoreLimit {
  double cores = 0;   // that may be busy at a time, on the average: 1.5; 0: no limit
  std::string group;  // which of the groups says so
};
CoreLimit core_limit(const std::string& root = "");

// Memory of the machine, or of the narrowest control group where that is less. In bytes; 0: not
// known. Files that the kernel only caches count as free, as in MemAvailable.
struct UsableMemory {
  int64_t total = 0;
  int64_t free = 0;  // could be had without swapping
};
UsableMemory usable_memory(const std::string& root = "");

}  // namespace lockstep
