// Opens TCP connections between all pairs of some ranks, which find and recognise each other
// through the store and the attempt's secret (dist/rank/meeting.h).
#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "dist/rank/token.h"

namespace lockstep {

struct MeshMembers {
  std::vector<int> ranks;  // in the World, ascending
  int me = 0;              // index into ranks
  std::string address;     // numeric address of this machine to listen on
  Token secret = {};       // of the attempt
  int streams = 1;         // connections between two members

  int size() const { return static_cast<int>(ranks.size()); }
};

// Every member calls it. Each listens on a free port of its address, publishes it in the store,
// connects to the members before it and accepts those after it; the port closes when all are
// connected and have shown each other that they know the secret. Returns sockets[stream][member],
// non-blocking, -1 for the member itself; the caller owns them. Throws MachineError that names the
// rank that cannot be reached, did not come or is a stranger.
std::vector<std::vector<int>> connect_mesh(c10d::Store& store, const MeshMembers& members,
                                           std::chrono::milliseconds timeout);

}  // namespace lockstep
