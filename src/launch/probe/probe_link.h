// Measures how fast two hosts talk over plain TCP: round trips of small messages, and bandwidth of
// one connection and of several, each way. One host listens, the other measures.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/descriptor.h"
#include "dist/rank/token.h"

namespace lockstep {

// Serves measurements on a free port of `address` from a thread of its own until the process ends,
// also several connections at a time; one that does not begin with the token is closed. Throws
// MachineError when the address cannot be bound: it is not this machine's.
class LinkServer {
 public:
  LinkServer(const std::string& address, const Token& token);
  int port() const { return port_; }

 private:
  int port_ = 0;
};

struct LinkRequest {
  std::string from;  // own address to connect from
  std::string to;
  int port = 0;
  Token token = {};      // of the other host's server
  double seconds = 0.3;  // for each of the four bandwidths; 0: round trips only
  int streams = 4;       // number of connections for the "many" bandwidths
};

struct LinkSpeed {
  double round_trip_seconds = 0, round_trip_min_seconds = 0;  // median, least
  // Bytes per second: to the other host over one connection and over several, and from it.
  double to_one = 0, to_many = 0, from_one = 0, from_many = 0;
};

// Throws MachineError when the other host cannot be reached, with the system's error and its usual
// cause.
LinkSpeed measure_link(const LinkRequest& request);

nlohmann::ordered_json to_json(const LinkSpeed& speed);

}  // namespace lockstep
