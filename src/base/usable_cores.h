// Determines the cores that this process may use: those of its CPU mask (taskset, a container's
// cpuset), within the limit of its control groups (base/control_group.h).
#pragma once

#include <string>
#include <vector>

namespace lockstep {

// Returns the cores of this process's CPU mask, ascending.
std::vector<int> usable_cores();

struct CoreFacts {
  // The usable cores of each NUMA node that has any, ascending. There is a single node where the
  // system does not report NUMA nodes.
  std::vector<std::vector<int>> nodes;
  double limit = 0;  // of the control groups, in cores; 0: no limit

  int cores() const;  // of all nodes
  // Returns how many threads can run at once: cores(), or the limit rounded to a whole number, but
  // at least 1. (A limit of 1.5 gives 2: two threads stall a quarter of the time, one thread would
  // leave a third of the limit unused.)
  int threads() const;
};

// `root` is prepended to /sys and /proc, for tests.
CoreFacts core_facts(const std::vector<int>& cores = usable_cores(), const std::string& root = "");

// Returns core_facts().threads() of this process. Code that sizes itself by the cores calls this.
int usable_threads();

// Divides `threads` among `ranks` processes of one machine. Each has at least one.
constexpr int threads_of_rank(int threads, int ranks) {
  return threads / ranks > 1 ? threads / ranks : 1;
}

// Returns the cores of process `index` when each of `ranks` processes gets cores of its own.
// Processes get whole NUMA nodes or equal parts of a node where they divide evenly among the nodes,
// else equal parts of all cores. REQUIRES: at least as many cores as ranks.
std::vector<int> cores_of_rank(const CoreFacts& facts, int ranks, int index);

}  // namespace lockstep
