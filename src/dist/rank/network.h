// Which address this machine talks from, and the socket that the store listens on.
// Knows nothing of torch or ranks.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

struct LocalAddress {
  std::string address;    // numeric, IPv4 or IPv6
  std::string interface;  // "eth0"; "lo" for loopback
  bool loopback = false;
};

// The local end of the route to `host`: the kernel's routing table decides, not the order of
// interfaces, so that docker0 or a hostname that /etc/hosts maps to 127.0.1.1 is never chosen for a
// peer elsewhere. Sends nothing. Throws MachineError when the name does not resolve or no route
// exists.
LocalAddress local_address_towards(const std::string& host);

// The address of a network interface of this machine: IPv4 where it has one. Throws ConfigError,
// naming the interfaces that there are, when there is none of this name or it has no address.
LocalAddress address_of_interface(const std::string& name);

// The numeric addresses of this machine's interfaces, loopback left out.
std::vector<std::string> own_addresses();

// Whether a numeric address is one of this machine: of an interface, or loopback.
bool is_own_address(const std::string& numeric);

// The numeric addresses of a host name; none when it does not resolve. `elsewhere`: without
// loopback (127.0.0.0/8, ::1).
std::vector<std::string> addresses_of(const std::string& host);
std::vector<std::string> addresses_elsewhere(const std::string& host);

// A listening TCP socket on `host` (an address of this machine) and `port` (0: any free one).
// The caller owns the descriptor. Throws MachineError that names host:port; for a port in use it
// advises to choose another.
int listen_on(const std::string& host, int port);

// The port that a listening socket got.
int port_of(int socket);

}  // namespace lockstep
