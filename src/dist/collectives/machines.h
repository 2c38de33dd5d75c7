// Finds out which ranks share a machine, and opens the memory that they share.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dist/collectives/local_group.h"

namespace lockstep {

struct Machines {
  std::vector<std::vector<int>> ranks;  // by machine, each ascending; ordered by first rank
  int mine = 0;                         // index of this rank's machine

  bool one() const { return ranks.size() == 1; }
  // Whether any two ranks share a machine.
  bool shared() const;
  const std::vector<int>& neighbours() const { return ranks[mine]; }  // includes this rank
};

// Groups the ranks by machine. `keys`: machine_key() of each rank.
Machines group_by_machine(const std::vector<std::string>& keys, int rank);

// Brings one string of every rank to every rank.
using GatherStrings = std::function<std::vector<std::string>(const std::string&)>;

struct OpenedGroup {
  std::unique_ptr<LocalGroup> group;  // null for a rank alone on its machine
  std::string failure;                // when not empty: why no rank may use its group
};

// All ranks of the World call it. The first rank of each machine creates the memory; the others
// find it by its process and descriptor. When that fails on any rank, all ranks get the failure,
// which names that rank.
OpenedGroup open_local_group(const Machines& machines, int rank, const GatherStrings& gather);

}  // namespace lockstep
