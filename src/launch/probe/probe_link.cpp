#include "launch/probe/probe_link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/error.h"
#include "dist/rank/network.h"

namespace lockstep {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBlock = 256 << 10;
constexpr int kRoundTrips = 60;
constexpr double kWarmingShare = 0.3;  // of the time: TCP's window opens, queues fill
constexpr std::chrono::seconds kConnectLimit{3};

enum class Mode : char { kEcho = 'e', kSend = 's', kReceive = 'r' };  // as the client sees it

// The first bytes of a connection.
struct Greeting {
  Token token;
  double seconds = 0;
  Mode mode = Mode::kEcho;
};

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool read_fully(int socket, void* data, std::size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t n = ::recv(socket, at, size, 0);
    if (n <= 0) return false;
    at += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

bool send_fully(int socket, const void* data, std::size_t size) {
  const auto* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::send(socket, at, size, MSG_NOSIGNAL);
    if (n <= 0) return false;
    at += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

// Limits every call on the socket: a cut network must not block the measurement.
void set_limits(int socket) {
  timeval limit{.tv_sec = 5, .tv_usec = 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  int yes = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

void send_for(int socket, double seconds) {
  const std::vector<char> block(kBlock);
  const Clock::time_point start = Clock::now();
  while (since(start) < seconds && send_fully(socket, block.data(), block.size())) {
  }
  ::shutdown(socket, SHUT_WR);
}

// Returns bytes per second from the end of the warm-up to the last byte received.
double receive_rate(int socket, double seconds) {
  std::vector<char> block(kBlock);
  const Clock::time_point start = Clock::now();
  double begin = 0, last = 0, bytes = 0;
  for (;;) {
    const ssize_t n = ::recv(socket, block.data(), block.size(), 0);
    if (n <= 0) break;
    last = since(start);
    if (begin > 0) {
      bytes += static_cast<double>(n);
    } else if (last >= kWarmingShare * seconds) {
      begin = last;
    }
  }
  return last > begin ? bytes / (last - begin) : 0;
}

void serve(Descriptor connection, const Token& token) {
  const int socket = connection.get();
  set_limits(socket);
  Greeting greeting;
  if (!read_fully(socket, &greeting, sizeof greeting)) return;
  if (!same_token(greeting.token, token)) return;
  constexpr double kLongest = 5;
  greeting.seconds = std::clamp(greeting.seconds, 0.0, kLongest);
  if (greeting.mode == Mode::kEcho) {
    for (double message; read_fully(socket, &message, sizeof message);) {
      if (!send_fully(socket, &message, sizeof message)) return;
    }
  } else if (greeting.mode == Mode::kReceive) {
    send_for(socket, greeting.seconds);
  } else {
    const double rate = receive_rate(socket, greeting.seconds);
    send_fully(socket, &rate, sizeof rate);
  }
}

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Address numeric_address(const std::string& text, int port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  const std::string service = std::to_string(port);
  if (getaddrinfo(text.c_str(), service.c_str(), &hints, &found) != 0) {
    throw MachineError("\"{}\" is no numeric address", text);
  }
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  Address out;
  std::memcpy(&out.storage, found->ai_addr, found->ai_addrlen);
  out.size = found->ai_addrlen;
  return out;
}

[[noreturn]] void fail_to_connect(const LinkRequest& request, int reason) {
  MachineError error("{} cannot be reached from {} (TCP port {})", request.to, request.from,
                     request.port);
  error.set_cause(std::strerror(reason));
  error.set_advice(reason == ETIMEDOUT || reason == EHOSTUNREACH || reason == ECONNREFUSED
                       ? "let TCP between the private addresses of the hosts pass: a firewall or "
                         "security group drops it (lockstep cluster check prints the rule)"
                       : "check addresses and routes of both hosts");
  throw error;
}

Descriptor connect_to(const LinkRequest& request, Mode mode) {
  const Address to = numeric_address(request.to, request.port);
  const Address from = numeric_address(request.from, 0);
  Descriptor connection(
      ::socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int socket = connection.get();
  if (socket < 0 || ::bind(socket, from.get(), from.size) != 0) fail_to_connect(request, errno);
  const int reason = connect_until(Clock::now() + kConnectLimit, socket, to.get(), to.size);
  if (reason != 0) fail_to_connect(request, reason);
  const int flags = ::fcntl(socket, F_GETFL);
  ::fcntl(socket, F_SETFL, flags & ~O_NONBLOCK);
  set_limits(socket);
  const Greeting greeting{.token = request.token, .seconds = request.seconds, .mode = mode};
  if (!send_fully(socket, &greeting, sizeof greeting)) fail_to_connect(request, errno);
  return connection;
}

void measure_round_trips(const LinkRequest& request, LinkSpeed& speed) {
  Descriptor connection = connect_to(request, Mode::kEcho);
  std::vector<double> seconds;
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < kRoundTrips && (i < 5 || since(begin) < 1); ++i) {
    double message = i;
    const Clock::time_point start = Clock::now();
    if (!send_fully(connection.get(), &message, sizeof message) ||
        !read_fully(connection.get(), &message, sizeof message)) {
      fail_to_connect(request, ETIMEDOUT);
    }
    seconds.push_back(since(start));
  }
  std::sort(seconds.begin(), seconds.end());
  speed.round_trip_seconds = seconds[seconds.size() / 2];
  speed.round_trip_min_seconds = seconds.front();
}

double measure_stream(const LinkRequest& request, Mode mode) {
  Descriptor connection = connect_to(request, mode);
  if (mode == Mode::kReceive) return receive_rate(connection.get(), request.seconds);
  send_for(connection.get(), request.seconds);
  double rate = 0;
  if (!read_fully(connection.get(), &rate, sizeof rate)) fail_to_connect(request, ETIMEDOUT);
  return rate;
}

double measure_streams(const LinkRequest& request, Mode mode, int streams) {
  std::vector<double> rates(static_cast<std::size_t>(streams));
  std::vector<std::exception_ptr> failures(rates.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        rates[i] = measure_stream(request, mode);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  double sum = 0;
  for (double rate : rates) sum += rate;
  return sum;
}

}  // namespace

LinkServer::LinkServer(const std::string& address, const Token& token) {
  Descriptor listening;
  try {
    listening = Descriptor(listen_on(address, 0));
  } catch (const Error&) {
    MachineError error("no socket can be bound to {} on this host", address);
    error.set_advice("the host's private address must be one of its own interfaces' (ip addr)");
    throw error;
  }
  port_ = port_of(listening.get());
  std::thread([listening = std::move(listening), token] {
    for (;;) {
      Descriptor connection(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!connection.open()) {
        if (errno == EINTR || errno == ECONNABORTED) continue;
        return;
      }
      std::thread([c = std::move(connection), token]() mutable {
        serve(std::move(c), token);
      }).detach();
    }
  }).detach();
}

LinkSpeed measure_link(const LinkRequest& request) {
  LinkSpeed speed;
  measure_round_trips(request, speed);
  if (request.seconds <= 0) return speed;
  speed.to_one = measure_streams(request, Mode::kSend, 1);
  speed.from_one = measure_streams(request, Mode::kReceive, 1);
  speed.to_many = measure_streams(request, Mode::kSend, request.streams);
  speed.from_many = measure_streams(request, Mode::kReceive, request.streams);
  return speed;
}

nlohmann::ordered_json to_json(const LinkSpeed& speed) {
  return {{"round_trip_seconds", speed.round_trip_seconds},
          {"round_trip_min_seconds", speed.round_trip_min_seconds},
          {"to_one_stream", speed.to_one},
          {"to_streams", speed.to_many},
          {"from_one_stream", speed.from_one},
          {"from_streams", speed.from_many}};
}

}  // namespace lockstep
