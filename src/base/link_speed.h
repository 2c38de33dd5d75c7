// What a network interface says of the speed of its link, where that is the link's.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

// Returns Mbit/s, or 0 where the interface does not say or says what is no fact about the link:
//  - the network cards of virtual machines (virtio, ENA, gVNIC, Hyper-V, VMware, Xen) give nothing,
//    a constant or the speed of a port that many machines share, while the cloud's limit is
//    another;
//  - a veth pair, as of containers, says 10,000, whatever is behind it;
//  - a tun or tap device says 10 (10,000 since Linux 6.3) until somebody sets it, as netlab does.
// `root` is prepended to /sys, for tests.
int64_t link_speed_mbit(const std::string& interface, const std::string& root = "");

}  // namespace lockstep
