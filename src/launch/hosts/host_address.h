// The address of a host that the others talk to.
#pragma once

#include <string>
#include <vector>

#include "launch/hosts/host_list.h"

namespace lockstep {

// The address of this host that ssh came in on, from SSH_CONNECTION; empty outside of ssh.
std::string own_ssh_address();

// What a host knows of its own addresses.
struct HostAddresses {
  std::string by_ssh;                // that ssh came in on; empty without ssh
  std::vector<std::string> its_own;  // of its interfaces, loopback left out
};

// The address given for the host; else what its name stands for, where one of its interfaces has
// that address; else the one that ssh came in on, for a name may stand for a gateway's address;
// else what the name stands for. Loopback never counts. Empty when nobody knows.
std::string address_for_others(const Host& host, const HostAddresses& known);

}  // namespace lockstep
