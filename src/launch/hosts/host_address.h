// Chooses the address of a host that the other hosts talk to.
#pragma once

#include <string>
#include <vector>

#include "launch/hosts/host_list.h"

namespace lockstep {

// Returns the address of this host that ssh connected to, from SSH_CONNECTION; empty outside of
// ssh.
std::string own_ssh_address();

// The addresses of a host, as it knows them itself.
struct HostAddresses {
  std::string by_ssh;                // that ssh connected to; empty without ssh
  std::vector<std::string> its_own;  // of its interfaces, without loopback
};

// Returns the address given for the host; else what its name resolves to, if one of its interfaces
// has that address; else the address that ssh connected to, since a name may resolve to a gateway's
// address; else what the name resolves to. Loopback never counts. Returns an empty text when no
// address is known.
std::string address_for_others(const Host& host, const HostAddresses& known);

}  // namespace lockstep
