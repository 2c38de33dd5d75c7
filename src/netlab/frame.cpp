#include "netlab/frame.h"

#include <algorithm>
#include <cstring>

namespace lockstep {

namespace {

constexpr uint64_t kAroundFrame = 8 + 4 + 12;
constexpr uint64_t kSmallestOnWire = 60;

const unsigned char* ethernet_of(const EthernetFrame& frame) {
  return frame.data.get() + sizeof(FrameHeader);
}

}  // namespace

uint64_t wire_bytes(const EthernetFrame& frame) {
  FrameHeader header;
  std::memcpy(&header, frame.data.get(), sizeof header);
  uint64_t size = frame.size - sizeof header;
  uint64_t tcp_at = header.checksum_start;
  constexpr int kLengthOfTcpHeader = 12;  // byte whose high half is it, in words (RFC 9293)
  if (header.gso_type == 0 || header.gso_size == 0 || tcp_at + kLengthOfTcpHeader >= size) {
    return std::max(size, kSmallestOnWire) + kAroundFrame;
  }
  uint64_t headers = tcp_at + (ethernet_of(frame)[tcp_at + kLengthOfTcpHeader] >> 4) * 4U;
  uint64_t payload = size > headers ? size - headers : 1;
  uint64_t packets = (payload + header.gso_size - 1) / header.gso_size;
  return payload + packets * (headers + kAroundFrame);
}

bool is_for_all(const EthernetFrame& frame) { return (ethernet_of(frame)[0] & 1) != 0; }

unsigned receiver_of(const EthernetFrame& frame) {
  const unsigned char* mac = ethernet_of(frame);
  return static_cast<unsigned>(mac[4] << 8 | mac[5]);
}

EthernetFrame* FramePool::take(std::size_t capacity) {
  std::vector<EthernetFrame*>& free = capacity == kSmallFrame ? small_ : large_;
  bytes_in_use_ += capacity;
  if (!free.empty()) {
    EthernetFrame* frame = free.back();
    free.pop_back();
    frame->users = 1;
    return frame;
  }
  owned_.push_back(std::make_unique<EthernetFrame>());
  EthernetFrame* frame = owned_.back().get();
  frame->capacity = static_cast<uint32_t>(capacity);
  frame->data.reset(new unsigned char[capacity]);
  frame->users = 1;
  return frame;
}

EthernetFrame* FramePool::fit(EthernetFrame* frame) {
  if (frame->capacity == kSmallFrame || frame->size > kSmallFrame) return frame;
  EthernetFrame* small = take(kSmallFrame);
  std::memcpy(small->data.get(), frame->data.get(), frame->size);
  small->size = frame->size;
  put_back(frame);
  return small;
}

void FramePool::put_back(EthernetFrame* frame) {
  if (--frame->users > 0) return;
  bytes_in_use_ -= frame->capacity;
  (frame->capacity == kSmallFrame ? small_ : large_).push_back(frame);
}

}  // namespace lockstep
