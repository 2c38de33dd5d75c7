// Holds Ethernet frames on their way through the switch. Each is one buffer from a pool, so that
// nothing is copied between the sender's and the receiver's kernel but what the two kernels copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace lockstep {

// struct virtio_net_hdr, which precedes every frame (Virtual I/O Device 1.2, section 5.1.6). The
// kernel's header that defines it is not valid C++.
struct FrameHeader {
  uint8_t flags, gso_type;  // gso_type 0: one packet
  uint16_t header_length;   // a hint only
  uint16_t gso_size;        // payload of each packet that it would be split into
  uint16_t checksum_start, checksum_offset;
};
static_assert(sizeof(FrameHeader) == 10);

inline constexpr std::size_t kLargestFrame = 65536 + 64;  // with FrameHeader and Ethernet header
inline constexpr std::size_t kSmallFrame = 2048;

struct EthernetFrame {
  uint32_t size = 0;      // bytes in `data`: a FrameHeader, then Ethernet's
  uint32_t capacity = 0;  // kSmallFrame or kLargestFrame
  int users = 0;          // ports that the frame still has to reach
  std::unique_ptr<unsigned char[]> data;
};

// Returns the bytes that a frame takes on a wire: every packet that it would be split into with its
// own headers, preamble, checksum and gap (IEEE 802.3: 8 + 4 + 12 bytes).
uint64_t wire_bytes(const EthernetFrame& frame);
// Returns whether every port gets the frame (Ethernet broadcast and multicast).
bool is_for_all(const EthernetFrame& frame);
// Returns the last two bytes of the receiver's Ethernet address.
unsigned receiver_of(const EthernetFrame& frame);

// Reuses the frames that were put back. Not thread-safe.
class FramePool {
 public:
  EthernetFrame* take(std::size_t capacity);
  // Moves a small frame out of a large buffer; returns where the frame is now.
  EthernetFrame* fit(EthernetFrame* frame);
  void put_back(EthernetFrame* frame);  // removes one user; the last one frees the frame
  std::size_t bytes_in_use() const { return bytes_in_use_; }

 private:
  std::vector<std::unique_ptr<EthernetFrame>> owned_;
  std::vector<EthernetFrame*> small_, large_;
  std::size_t bytes_in_use_ = 0;
};

}  // namespace lockstep
