#include "dist/liveness/heartbeat_wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/error.h"
#include "dist/rank/network.h"

namespace lockstep {
namespace {

struct BeatHead {
  uint32_t type = 0, length = 0;
};

std::string address_text(const sockaddr_storage& address, socklen_t length) {
  char text[NI_MAXHOST];
  const auto* plain = reinterpret_cast<const sockaddr*>(&address);
  if (getnameinfo(plain, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

}  // namespace

uint32_t wire_layout() {
  uint32_t layout = 3;  // increase it when the meaning of anything changes
  for (std::size_t size :
       {sizeof(BeatGreeting), sizeof(RankStatus), sizeof(BeatAnswer), sizeof(BeatTableEntry),
        sizeof(OperationRecord), sizeof(MachineFigures), sizeof(StopMessage)}) {
    layout = layout * 31 + static_cast<uint32_t>(size);
  }
  return layout;
}

BeatSocket::BeatSocket(int descriptor) : descriptor_(descriptor) {
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  send_promptly(descriptor);
  try_again_soon(descriptor);
}

BeatSocket::~BeatSocket() { close(); }

BeatSocket::BeatSocket(BeatSocket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      limit_(other.limit_),
      in_(std::move(other.in_)),
      out_(std::move(other.out_)) {}

BeatSocket& BeatSocket::operator=(BeatSocket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(limit_, other.limit_);
  std::swap(in_, other.in_);
  std::swap(out_, other.out_);
  return *this;
}

void BeatSocket::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

void BeatSocket::receive() {
  char buffer[16384];
  while (is_open()) {
    ssize_t n = recv(descriptor_, buffer, sizeof buffer, 0);
    if (n > 0) {
      in_.append(buffer, static_cast<std::size_t>(n));
      if (in_.size() > 2 * (limit_ + sizeof buffer)) return;  // next() takes or rejects it
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
      close();
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

std::optional<BeatFrame> BeatSocket::next() {
  BeatHead head;
  if (in_.size() < sizeof head) return {};
  std::memcpy(&head, in_.data(), sizeof head);
  if (head.length > limit_) {
    in_.clear();
    close();
    return {};
  }
  if (in_.size() < sizeof head + head.length) return {};
  BeatFrame out{static_cast<BeatType>(head.type), in_.substr(sizeof head, head.length)};
  in_.erase(0, sizeof head + head.length);
  return out;
}

void BeatSocket::send(BeatType type, std::string_view body) {
  if (!is_open()) return;
  BeatHead head{static_cast<uint32_t>(type), static_cast<uint32_t>(body.size())};
  out_.append(reinterpret_cast<const char*>(&head), sizeof head);
  out_.append(body);
  flush();
}

void BeatSocket::flush() {
  while (is_open() && !out_.empty()) {
    ssize_t n = ::send(descriptor_, out_.data(), out_.size(), MSG_NOSIGNAL);
    if (n > 0) {
      out_.erase(0, static_cast<std::size_t>(n));
    } else if (errno != EINTR) {
      return;  // the buffer is full, or the link broke: receive() finds out
    }
  }
}

std::string own_address(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  return getsockname(socket, plain, &length) == 0 ? address_text(address, length) : "";
}

std::string peer_address(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  return getpeername(socket, plain, &length) == 0 ? address_text(address, length) : "";
}

}  // namespace lockstep
