// Which ranks share a machine, and the memory that they share.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dist/collectives/local_group.h"

namespace lockstep {

// Equal for processes that can see each other and each other's network: of one boot of one kernel,
// in one PID namespace and one network namespace. Namespaces that stand for machines keep their
// networks that way. Empty where that cannot be told (no /proc).
std::string machine_key();

struct Machines {
  std::vector<std::vector<int>> ranks;  // by machine, each ascending, in the order of their first
  int mine = 0;                         // index of this rank's machine

  bool one() const { return ranks.size() == 1; }
  // Whether any two ranks share a machine.
  bool shared() const;
  const std::vector<int>& neighbours() const { return ranks[mine]; }  // this rank among them
};

// `keys` by rank.
Machines group_by_machine(const std::vector<std::string>& keys, int rank);

// Brings one string of every rank to every rank.
using GatherStrings = std::function<std::vector<std::string>(const std::string&)>;

struct OpenedGroup {
  std::unique_ptr<LocalGroup> group;  // none for a rank alone on its machine
  std::string failure;                // when not empty: why no rank shall use its group
};

// Called by all ranks of the World. The first rank of each machine makes the memory, the others
// find it by its process and descriptor. When that fails on any rank all get the failure, which
// names the rank.
OpenedGroup open_local_group(const Machines& machines, int rank, const GatherStrings& gather);

}  // namespace lockstep
