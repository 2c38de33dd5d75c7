// Makes Ethernet interfaces whose other end is a file descriptor (TAP), and sets them up through
// system calls, without starting a program.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/descriptor.h"

namespace lockstep {

using MacAddress = std::array<uint8_t, 6>;

struct TapOptions {
  std::string name;  // up to 15 characters
  MacAddress mac{};
  std::string address;  // IPv4; empty: none
  int prefix = 24;      // length of the network prefix, in bits
  int mtu = 1500;
  double speed_mbit = 0;  // as ethtool and /sys/class/net/NAME/speed show it; 0: unchanged
};

// Makes an interface in the calling thread's network namespace: up, non-blocking, and gone when the
// descriptor is closed. Every frame read from or written to the descriptor begins with a
// FrameHeader. Throws MachineError.
Descriptor open_tap(const TapOptions& options);

// With `large`, a sender's kernel hands over and a receiver's takes up to 64 kB unsplit; else every
// packet passes by itself.
void set_large_frames(int tap, bool large);
// Limits frames to `bytes` (IFLA_GSO_MAX_SIZE). Call it in the interface's network namespace.
void set_largest_frame(const std::string& interface, int bytes);

void bring_up(const std::string& interface);  // lo, for example
// Adds a permanent ARP entry.
void add_neighbour(const std::string& interface, const std::string& address, const MacAddress& mac);

// Puts the calling thread into another network namespace for this object's lifetime.
class InNetworkNamespace {
 public:
  explicit InNetworkNamespace(int network_namespace);  // a descriptor; throws MachineError
  ~InNetworkNamespace();
  InNetworkNamespace(const InNetworkNamespace&) = delete;
  InNetworkNamespace& operator=(const InNetworkNamespace&) = delete;

 private:
  Descriptor before_;
};

}  // namespace lockstep
