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
#include <optional>

#include "base/descriptor.h"
#include "base/error.h"
#include "dist/liveness/peer_error.h"
#include "dist/rank/meeting.h"
#include "dist/rank/network.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

// The first bytes on a connection.
struct Hello {
  Introduction introduction;
  int32_t member, stream;
};
static_assert(sizeof(Hello) == 56);

constexpr std::chrono::seconds kStrangersTime{5};  // in which they must say hello
constexpr std::size_t kMostStrangers = 64;         // at a time, beside the members
// What a connection takes beyond its window: more would wait there while another one is free or
// while results of earlier sums could go first, less would leave the line idle until the mesh's
// thread gets a core.
constexpr int kUnsentBytes = 256 << 10;

std::string key_of(int member) { return fmt::format("mesh/{}", member); }

// Has the kernel spread a window over the round trip: sent as one burst it overflows a buffer on
// the way, and what is lost costs more round trips than the burst saves (Aggarwal, Savage and
// Anderson 2000, "Understanding the performance of TCP pacing"); on short ways bursts of two
// machines meet before a third one. The kernel paces a connection that has a limit of its rate, so
// this sets one that no network reaches.
void pace(int socket) {
  constexpr uint32_t kUnlimited = UINT32_MAX - 1;  // bytes a second
  setsockopt(socket, SOL_SOCKET, SO_MAX_PACING_RATE, &kUnlimited, sizeof kUnlimited);
}

class Connector {
 public:
  Connector(c10d::Store& store, const MeshMembers& members, std::chrono::milliseconds timeout)
      : store_(store), members_(members), end_(Clock::now() + timeout), door_(members.secret) {
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
    store_.set(key_of(members_.me), to_text({members_.address, port_of(listener_), door_.token()}));
    for (int member = 0; member < members_.me; ++member) {
      const MeetingPlace place = place_of(member);
      for (int stream = 0; stream < members_.streams; ++stream) connect_to(place, member, stream);
    }
    const int expected = (members_.size() - 1 - members_.me) * members_.streams;
    for (int come = 0; come < expected;) come += let_in() ? 1 : 0;
    for (const Called& called : called_) recognise(called);
    for (const std::vector<int>& stream : sockets_) {
      for (int socket : stream) {
        if (socket < 0) continue;
        send_promptly(socket);
        setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes, sizeof kUnsentBytes);
        pace(socket);
        fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
      }
    }
    return std::exchange(sockets_, {});
  }

 private:
  // A connection that this member made; the other side has not answered yet.
  struct Called {
    int member, socket;
    Visitor visitor;
  };
  // A connection that another made; it has not said its whole hello yet.
  struct Stranger {
    Descriptor socket;
    Clock::time_point until;
    Hello hello = {};
    std::size_t got = 0;  // bytes of hello
  };

  MeetingPlace place_of(int member) {
    store_.wait({key_of(member)}, std::chrono::milliseconds{milliseconds_until(end_) + 1});
    const std::vector<uint8_t> text = store_.get(key_of(member));
    return meeting_place_of(std::string(text.begin(), text.end()));
  }

  void connect_to(const MeetingPlace& place, int member, int stream) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    const std::string port = std::to_string(place.port);
    if (getaddrinfo(place.address.c_str(), port.c_str(), &hints, &found) != 0) {
      throw std::runtime_error(fmt::format("{} is no address", place.address));
    }
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockets_[stream][member] = fd;
    int reason = connect_until(end_, fd, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    const Called called{member, fd, Visitor(members_.secret, place.token)};
    const Hello hello{called.visitor.introduction(), members_.me, stream};
    if (reason == 0 && send(fd, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) reason = errno;
    if (reason == 0) return called_.push_back(called);
    MachineError error("rank {} cannot reach rank {} at {}:{}", members_.ranks[members_.me],
                       members_.ranks[member], place.address, place.port);
    error.set_cause(std::strerror(reason));
    error.set_advice("a firewall between the machines? all TCP ports between them must be open");
    throw error;
  }

  // The answers come while this member accepts others, so no member waits for one before it.
  void recognise(const Called& called) {
    Proof answer;
    std::size_t got = 0;
    while (got < sizeof answer) {
      pollfd wanted{called.socket, POLLIN, 0};
      const int ready = poll(&wanted, 1, milliseconds_until(end_));
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) break;
      const ssize_t more = recv(called.socket, answer.data() + got, sizeof answer - got, 0);
      if (more < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (more <= 0) break;
      got += static_cast<std::size_t>(more);
    }
    if (got == sizeof answer && called.visitor.recognises(answer)) return;
    MachineError error("rank {} does not know what answers in place of rank {}",
                       members_.ranks[members_.me], members_.ranks[called.member]);
    error.set_advice("LOCKSTEP_SECRET, where it is set, must be the same for all ranks");
    throw error;
  }

  // Waits for what happens on the listening port or on a connection that has not said hello;
  // returns true when a member is connected.
  bool let_in() {
    std::vector<pollfd> wanted{{listener_, POLLIN, 0}};
    int patience = milliseconds_until(end_);
    for (const Stranger& stranger : strangers_) {
      wanted.push_back({stranger.socket.get(), POLLIN, 0});
      patience = std::min(patience, milliseconds_until(stranger.until) + 1);
    }
    poll(wanted.data(), wanted.size(), patience);
    if (Clock::now() >= end_) report_absent();
    bool member = false;
    for (std::size_t i = 0; i < strangers_.size() && !member; ++i) {
      if (wanted[i + 1].revents != 0) member = hear(strangers_[i]);
    }
    std::erase_if(strangers_,
                  [](const Stranger& s) { return !s.socket.open() || Clock::now() >= s.until; });
    if ((wanted[0].revents & POLLIN) != 0) {
      strangers_.push_back(
          {Descriptor(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)),
           Clock::now() + kStrangersTime});
      const auto most = kMostStrangers + members_.ranks.size() * sockets_.size();
      if (strangers_.size() > most) strangers_.erase(strangers_.begin());
    }
    return member;
  }

  // Takes what a connection says. It is a member's, and returns true, after a whole hello that
  // proves to be one; it is closed after another.
  bool hear(Stranger& stranger) {
    auto* bytes = reinterpret_cast<char*>(&stranger.hello);
    const ssize_t more =
        recv(stranger.socket.get(), bytes + stranger.got, sizeof(Hello) - stranger.got, 0);
    if (more < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    stranger.got += static_cast<std::size_t>(std::max<ssize_t>(more, 0));
    if (more > 0 && stranger.got < sizeof(Hello)) return false;
    const Hello& hello = stranger.hello;
    std::optional<Proof> answer;
    if (more > 0) answer = door_.admit(hello.introduction);
    const bool expected = answer && hello.member > members_.me && hello.member < members_.size() &&
                          hello.stream >= 0 && hello.stream < members_.streams &&
                          sockets_[hello.stream][hello.member] < 0;
    if (!expected || send(stranger.socket.get(), answer->data(), answer->size(), MSG_NOSIGNAL) !=
                         std::ssize(*answer)) {
      stranger.socket.close();
      return false;
    }
    sockets_[hello.stream][hello.member] = stranger.socket.release();
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
  Doorkeeper door_;
  std::vector<std::vector<int>> sockets_;  // [stream][member]
  std::vector<Called> called_;
  std::vector<Stranger> strangers_;
};

}  // namespace

std::vector<std::vector<int>> connect_mesh(c10d::Store& store, const MeshMembers& members,
                                           std::chrono::milliseconds timeout) {
  return Connector(store, members, timeout).run();
}

}  // namespace lockstep
