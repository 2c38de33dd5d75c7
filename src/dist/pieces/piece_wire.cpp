#include "dist/pieces/piece_wire.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace lockstep {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kWireLook{100};  // between two looks at `stopping`

// Waits until the socket is ready.
Moved wait_for(int socket, short events, Clock::time_point since, const PiecePatience& patience) {
  for (;;) {
    if (patience.stopping) return Moved::kStopped;
    pollfd wanted{socket, events, 0};
    if (::poll(&wanted, 1, static_cast<int>(kWireLook.count())) > 0) return Moved::kAll;
    const bool limited = patience.silence.count() > 0;
    if (limited && Clock::now() - since > patience.silence) return Moved::kSilent;
  }
}

// `move`(bytes done) is a call of send or recv.
template <typename Move>
Moved move_all(int socket, short events, std::size_t size, const PiecePatience& patience,
               const Move& move) {
  Clock::time_point last = Clock::now();
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = move(done);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
      last = Clock::now();
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
      return Moved::kEnded;
    } else if (const Moved ready = wait_for(socket, events, last, patience); ready != Moved::kAll) {
      return ready;
    }
  }
  return Moved::kAll;
}

}  // namespace

Moved send_all(int socket, const void* data, std::size_t size, const PiecePatience& patience) {
  return move_all(socket, POLLOUT, size, patience, [&](std::size_t done) {
    return ::send(socket, static_cast<const char*>(data) + done, size - done,
                  MSG_NOSIGNAL | MSG_DONTWAIT);
  });
}

Moved receive_all(int socket, void* data, std::size_t size, const PiecePatience& patience) {
  return move_all(socket, POLLIN, size, patience, [&](std::size_t done) {
    return ::recv(socket, static_cast<char*>(data) + done, size - done, MSG_DONTWAIT);
  });
}

}  // namespace lockstep
