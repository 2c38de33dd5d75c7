// Finds silent corruption: ranks that take the same updates hold the same bits, unless the memory
// of one changed them, or its arithmetic did.
#pragma once

#include <torch/types.h>

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "dist/collectives/world.h"

namespace lockstep {

struct Replica {  // an array that every rank holds alike
  std::string name;
  torch::Tensor data;
};

struct UnequalRanks {
  std::vector<std::string> arrays;  // in which some rank differs; empty: all are equal
  // The ranks that differ from what more than half of all agree on; with no such majority, all that
  // differ from rank 0, and it.
  std::vector<int> ranks;
  int good = -1;     // the lowest rank of the majority, or -1
  std::string text;  // "rank 2 on c holds other bits than the 3 others in the weights"

  bool empty() const { return arrays.empty(); }
};

// Compares fingerprints of the arrays, which have the same names on every rank. The same result on
// every rank. Collective.
UnequalRanks find_unequal(World& world, std::span<const Replica> arrays);

// Gives all ranks the bits of unequal.good. Collective.
void mend(World& world, std::span<const Replica> arrays, const UnequalRanks& unequal);

// Returns the error with which a run ends that cannot be mended.
MachineError unequal_error(const UnequalRanks& unequal);

}  // namespace lockstep
