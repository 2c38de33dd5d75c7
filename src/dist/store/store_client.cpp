#include "dist/store/store_client.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "base/error.h"
#include "dist/rank/network.h"

namespace lockstep {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRetry{50};
constexpr int kTries = 3;  // of connections that end before the server says anything

// Connects to the first of the addresses that answers; otherwise returns the last reason.
int connect_to_any(const addrinfo* addresses, Descriptor& out,
                   std::chrono::steady_clock::time_point end) {
  constexpr std::chrono::seconds kOneAddress{10};
  int reason = EADDRNOTAVAIL;
  for (const addrinfo* at = addresses; at != nullptr; at = at->ai_next) {
    Descriptor socket(::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const auto limit = std::min(end, std::chrono::steady_clock::now() + kOneAddress);
    reason =
        socket.open() ? connect_until(limit, socket.get(), at->ai_addr, at->ai_addrlen) : errno;
    if (reason != 0) continue;
    out = std::move(socket);
    return 0;
  }
  return reason;
}

}  // namespace

StoreClient::StoreClient(const std::string& host, int port, const Token& secret,
                         milliseconds timeout)
    : host_(host), port_(port) {
  const Clock::time_point end = Clock::now() + timeout;
  for (int tries = 1; !socket_.open(); ++tries) {
    connect(end);
    try {
      receive_until(sizeof(Token), end);
    } catch (const MachineError&) {  // an old connection of these two ports may reset the new one
      if (tries == kTries) throw;
      in_.clear();
      std::this_thread::sleep_for(kRetry);
    }
  }
  prove(secret, end);
}

void StoreClient::connect(Clock::time_point end) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  for (;;) {
    addrinfo* found = nullptr;
    const int code = ::getaddrinfo(host_.c_str(), std::to_string(port_).c_str(), &hints, &found);
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, &::freeaddrinfo);
    // A host that is just starting has no name yet, or nothing listens there.
    std::string cause = code == 0 ? "" : ::gai_strerror(code);
    if (code == 0) {
      const int reason = connect_to_any(found, socket_, end);
      if (reason == 0) break;
      cause = std::strerror(reason);
    }
    if (Clock::now() + kRetry > end) fail(cause);
    std::this_thread::sleep_for(kRetry);
  }
  send_promptly(socket_.get());
  try_again_soon(socket_.get());
}

void StoreClient::prove(const Token& secret, Clock::time_point end) {
  Token theirs;
  std::memcpy(theirs.data(), in_.data(), theirs.size());
  in_.erase(0, theirs.size());
  const Visitor us(secret, theirs);
  const Introduction& ours = us.introduction();
  send({reinterpret_cast<const char*>(&ours), sizeof ours}, end);
  Proof proof;
  constexpr const char* kStranger =
      "what listens there does not know this run's secret (LOCKSTEP_SECRET must be the same for "
      "all ranks)";
  try {
    receive_until(proof.size(), end);
  } catch (const MachineError&) {
    fail(kStranger);
  }
  std::memcpy(proof.data(), in_.data(), proof.size());
  in_.erase(0, proof.size());
  if (!us.recognises(proof)) fail(kStranger);
}

StoreFrame StoreClient::ask(const StoreFrame& request, milliseconds patience) {
  std::lock_guard lock(mutex_);
  if (!socket_.open()) fail("the connection is closed");
  const Clock::time_point end = Clock::now() + patience + milliseconds(request.wait_milliseconds);
  send(encode(request), end);
  for (;;) {
    if (std::optional<StoreFrame> answer = take_store_frame(in_)) return std::move(*answer);
    receive_until(in_.size() + 1, end);
  }
}

void StoreClient::send(std::string_view bytes, Clock::time_point end) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      wait_for(POLLOUT, end);
    } else if (errno != EINTR) {
      fail(std::strerror(errno));
    }
  }
}

void StoreClient::receive_until(std::size_t bytes, Clock::time_point end) {
  char space[64 << 10];
  while (in_.size() < bytes) {
    const ssize_t got = ::recv(socket_.get(), space, sizeof space, 0);
    if (got > 0) {
      in_.append(space, static_cast<std::size_t>(got));
    } else if (got == 0) {
      fail("rank 0 closed the connection");
    } else if (errno == EAGAIN) {
      wait_for(POLLIN, end);
    } else if (errno != EINTR) {
      fail(std::strerror(errno));
    }
  }
}

void StoreClient::wait_for(short event, Clock::time_point end) {
  pollfd wanted{socket_.get(), event, 0};
  if (::poll(&wanted, 1, milliseconds_until(end)) == 0) fail("it does not answer");
}

void StoreClient::fail(const std::string& cause) {
  socket_.close();
  throw MachineError("the store of rank 0 at {}:{}: {}", host_, port_, cause);
}

}  // namespace lockstep
