// Places: the ranks that see one data folder. Ranks of one machine are of one place unless their
// folders differ; machines that share a mount are places of their own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "dist/collectives/world.h"

namespace lockstep {

struct Places {
  std::vector<std::vector<int>> ranks;  // by place, each ascending; ordered by first rank
  int mine = 0;

  int leader(std::size_t place) const { return ranks[place].front(); }
};

// Returns a text that is equal for the ranks of one place.
std::string place_key(const World& world, const fs::path& folder);
// `keys`: place_key() of each rank.
Places find_places(const std::vector<std::string>& keys, int rank);

// Returns the launcher's name of this rank's host, else the host's own.
std::string host_of(const World& world);
// Returns the address of this machine that the other ranks reach.
std::string address_of(const World& world);

// Runs `work` on every rank and brings its result to all. When it throws an Error on any rank, all
// ranks throw: the failed ones their own, the others one with the same exit code that names the
// first failed rank's host. Collective.
std::vector<std::string> gather_results(World& world, const std::function<std::string()>& work);

}  // namespace lockstep
