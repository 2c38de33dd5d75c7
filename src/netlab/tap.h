// Ethernet interfaces whose other end is a file descriptor (TAP), and their settings, by the
// kernel's own calls: no program is started.
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
  int prefix = 24;      // bits of the address that name its network
  int mtu = 1500;
  double speed_mbit = 0;  // what ethtool and /sys/class/net/NAME/speed show; 0: stays
};

// Every frame read from or written to the descriptor begins with a FrameHeader: with
// `large` frames a sender's kernel hands over up to 64 kB at a time and the receiver's takes it so.
// Made in the calling thread's network namespace, up, non-blocking; gone when the descriptor is
// closed. Throws MachineError.
Descriptor open_tap(const TapOptions& options);

// Whether frames above the MTU come through unsplit, or every packet by itself.
void set_large_frames(int tap, bool large);
// Limits them to so many bytes (IFLA_GSO_MAX_SIZE); in the interface's network namespace.
void set_largest_frame(const std::string& interface, int bytes);

void bring_up(const std::string& interface);  // as lo
// An answer to ARP that is known from the beginning.
void add_neighbour(const std::string& interface, const std::string& address, const MacAddress& mac);

// The calling thread is in another network namespace as long as this lives.
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
