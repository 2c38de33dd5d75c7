// The cores that this process may use: those of its mask (taskset, a container's cpuset), as far as
// its control groups let them be busy (base/control_group.h).
#pragma once

#include <string>
#include <vector>

namespace lockstep {

// The cores of this process's mask, ascending.
std::vector<int> usable_cores();

struct CoreFacts {
  // The usable cores of each NUMA node that has some, ascending; one node where the system tells of
  // none.
  std::vector<std::vector<int>> nodes;
  double limit = 0;  // of the control groups, in cores; 0: none

  int cores() const;  // of all nodes
  // How many threads find a core each: cores(), or the limit rounded to a whole number (1.5 -> 2:
  // two threads stand still a quarter of the time, one would leave a third unused); at least 1.
  int threads() const;
};

// `root` stands in front of /sys and /proc, for tests.
CoreFacts core_facts(const std::vector<int>& cores = usable_cores(), const std::string& root = "");

// core_facts().threads() of this process: what sizes itself by cores asks for this.
int usable_threads();

// The threads of each of `ranks` processes that share so many: at least 1.
constexpr int threads_of_rank(int threads, int ranks) {
  return threads / ranks > 1 ? threads / ranks : 1;
}

// The cores of process `index` of `ranks` that are to have cores of their own: whole NUMA nodes, or
// equal parts of one, where that comes out even; else equal parts of all. REQUIRES as many cores as
// ranks.
std::vector<int> cores_of_rank(const CoreFacts& facts, int ranks, int index);

}  // namespace lockstep
