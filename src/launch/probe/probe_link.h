// How fast two hosts talk over plain TCP: round trips of small messages, and bandwidth of one
// connection and of several, each way. One host listens, the other measures.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/descriptor.h"

namespace lockstep {

// Serves measurements on a free port of `address` from a thread of its own until the process ends,
// one or more connections at a time. Throws MachineError when the address cannot be bound: it is
// none of this machine.
class LinkServer {
 public:
  explicit LinkServer(const std::string& address);
  int port() const { return port_; }

 private:
  int port_ = 0;
};

struct LinkRequest {
  std::string from;  // own address to talk from
  std::string to;
  int port = 0;
  double seconds = 0.3;  // for each of the four bandwidths; 0: round trips alone
  int streams = 4;       // of the bandwidth of several connections
};

struct LinkSpeed {
  double round_trip_seconds = 0, round_trip_min_seconds = 0;  // median, least
  // Bytes a second: towards the other host with one connection, with several; from it likewise.
  double to_one = 0, to_many = 0, from_one = 0, from_many = 0;
};

// Throws MachineError when the other host cannot be reached: what the system said, and what that
// usually means.
LinkSpeed measure_link(const LinkRequest& request);

nlohmann::ordered_json to_json(const LinkSpeed& speed);

}  // namespace lockstep
