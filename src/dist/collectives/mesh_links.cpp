#include "dist/collectives/mesh_links.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "dist/liveness/peer_error.h"
#include "dist/rank/network.h"
#include "dist/rank/token.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

// The first bytes on a connection. The token, which is in the store, keeps strangers out.
struct Hello {
  Token token;
  int32_t member, stream;
};

constexpr std::chrono::seconds kStrangersTime{5};  // in which they must say hello

std::string key_of(int member) { return fmt::format("mesh/{}", member); }

int milliseconds_until(Clock::time_point end) {
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
  return static_cast<int>(std::max<int64_t>(left, 0));
}

class Connector {
 public:
  Connector(c10d::Store& store, const MeshMembers& members, std::chrono::milliseconds timeout)
      : store_(store), members_(members), end_(Clock::now() + timeout) {
    sockets_.assign(members.streams, std::vector<int>(members.ranks.size(), -1));
  }
  ~Connector() {
    if (listener_ >= 0) close(listener_);
    for (const std::vector<int>& stream : sockets_) {
      for (int socket : stream) {
        if (socket >= 0) close(socket);
      }
    }
  }
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

  std::vector<std::vector<int>> run() {
    listener_ = listen_on(members_.address, 0);
    store_.set(key_of(members_.me), fmt::format("{} {} {}", members_.address, port_of(listener_),
                                                members_.me == 0 ? to_hex(random_token()) : "-"));
    token_ = token_of_hex(place_of(0).at(2));
    for (int member = 0; member < members_.me; ++member) {
      for (int stream = 0; stream < members_.streams; ++stream) connect_to(member, stream);
    }
    const int expected = (members_.size() - 1 - members_.me) * members_.streams;
    for (int come = 0; come < expected;) come += let_in() ? 1 : 0;
    for (const std::vector<int>& stream : sockets_) {
      for (int socket : stream) {
        int yes = 1;
        if (socket < 0) continue;
        setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
      }
    }
    return std::exchange(sockets_, {});
  }

 private:
  // Returns {address, port, token}; the token is the first member's.
  std::vector<std::string> place_of(int member) {
    store_.wait({key_of(member)}, std::chrono::milliseconds{milliseconds_until(end_) + 1});
    const std::vector<uint8_t> text = store_.get(key_of(member));
    return split(std::string(text.begin(), text.end()), ' ');
  }

  void connect_to(int member, int stream) {
    const std::vector<std::string> place = place_of(member);
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    if (getaddrinfo(place[0].c_str(), place[1].c_str(), &hints, &found) != 0) {
      throw std::runtime_error(fmt::format("{} is no address", place[0]));
    }
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockets_[stream][member] = fd;
    int reason = connect(fd, found->ai_addr, found->ai_addrlen) == 0 ? 0 : errno;
    freeaddrinfo(found);
    if (reason == EINPROGRESS) {
      pollfd wanted{fd, POLLOUT, 0};
      socklen_t length = sizeof reason;
      reason = ETIMEDOUT;
      if (poll(&wanted, 1, milliseconds_until(end_)) > 0) {
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &length);
      }
    }
    const Hello hello{token_, members_.me, stream};
    if (reason == 0 && send(fd, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) reason = errno;
    if (reason == 0) return;
    MachineError error("rank {} cannot reach rank {} at {}:{}", members_.ranks[members_.me],
                       members_.ranks[member], place[0], place[1]);
    error.set_cause(std::strerror(reason));
    error.set_advice("a firewall between the machines? all TCP ports between them must be open");
    throw error;
  }

  // Waits for one connection; returns false when it was a stranger's.
  bool let_in() {
    pollfd wanted{listener_, POLLIN, 0};
    if (poll(&wanted, 1, milliseconds_until(end_)) <= 0) report_absent();
    int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return false;
    timeval limit{kStrangersTime.count(), 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    Hello hello{};
    const bool known = recv(fd, &hello, sizeof hello, MSG_WAITALL) == sizeof hello &&
                       same_token(hello.token, token_) && hello.member > members_.me &&
                       hello.member < members_.size() && hello.stream >= 0 &&
                       hello.stream < members_.streams && sockets_[hello.stream][hello.member] < 0;
    if (!known) {
      close(fd);
      return false;
    }
    sockets_[hello.stream][hello.member] = fd;
    return true;
  }

  [[noreturn]] void report_absent() {
    for (int member = members_.me + 1; member < members_.size(); ++member) {
      for (const std::vector<int>& stream : sockets_) {
        if (stream[member] >= 0) continue;
        MachineError error("rank {} did not connect to rank {} in time", members_.ranks[member],
                           members_.ranks[members_.me]);
        error.set_advice(
            "a firewall between the machines? all TCP ports between them must be open");
        throw error;
      }
    }
    throw MachineError("the connections between the machines were not ready in time");
  }

  c10d::Store& store_;
  const MeshMembers& members_;
  Clock::time_point end_;
  int listener_ = -1;
  Token token_ = {};
  std::vector<std::vector<int>> sockets_;  // [stream][member]
};

}  // namespace

std::vector<std::vector<int>> connect_mesh(c10d::Store& store, const MeshMembers& members,
                                           std::chrono::milliseconds timeout) {
  return Connector(store, members, timeout).run();
}

}  // namespace lockstep
