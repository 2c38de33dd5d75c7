// Measures a network between two namespaces from within this process. Sockets stay in the namespace
// in which they were opened, so threads can play the hosts.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "netlab/lab.h"
#include "netlab/tap.h"

namespace lockstep {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline sockaddr_in endpoint(const std::string& address, int port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(static_cast<uint16_t>(port));
  ::inet_pton(AF_INET, address.c_str(), &out.sin_addr);
  return out;
}

inline Descriptor socket_in(Lab& lab, const std::string& host, int kind, int port) {
  InNetworkNamespace there(lab.network_namespace(host));
  Descriptor socket(::socket(AF_INET, kind | SOCK_CLOEXEC, 0));
  sockaddr_in address = endpoint("0.0.0.0", port);
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error(std::string("bind: ") + std::strerror(errno));
  }
  return socket;
}

// This thread runs before all others while it exists, as the lab's does: what it measures is the
// network and not the load of the machine. Without the right to it nothing changes.
class RealTime {
 public:
  RealTime() {
    sched_param first{.sched_priority = 1};
    ::pthread_setschedparam(::pthread_self(), SCHED_RR, &first);
  }
  ~RealTime() {
    sched_param as_usual{.sched_priority = 0};
    ::pthread_setschedparam(::pthread_self(), SCHED_OTHER, &as_usual);
  }
  RealTime(const RealTime&) = delete;
  RealTime& operator=(const RealTime&) = delete;
};

struct PingOptions {
  int count = 20;
  double every_seconds = 0.002;
  double wait_seconds = 0.5;  // for another reply, once all were sent
};

// Returns the round trip of each datagram in seconds; below 0 for those without a reply.
inline std::vector<double> ping(Lab& lab, const std::string& from, const std::string& to,
                                const PingOptions& options = {}) {
  Descriptor server = socket_in(lab, to, SOCK_DGRAM, 7000),
             client = socket_in(lab, from, SOCK_DGRAM, 0);
  std::atomic<bool> stop = false;
  const RealTime before_others;
  std::thread echo([&] {
    const RealTime before_others_too;
    while (!stop) {
      pollfd wanted{server.get(), POLLIN, 0};
      if (::poll(&wanted, 1, 10) <= 0) continue;
      int number;
      sockaddr_in peer;
      socklen_t length = sizeof peer;
      if (::recvfrom(server.get(), &number, sizeof number, 0, reinterpret_cast<sockaddr*>(&peer),
                     &length) == sizeof number) {
        ::sendto(server.get(), &number, sizeof number, 0, reinterpret_cast<sockaddr*>(&peer),
                 length);
      }
    }
  });
  std::vector<double> sent, out(static_cast<std::size_t>(options.count), -1);
  sockaddr_in there = endpoint(lab.address(to), 7000);
  // A time slice that came late is not made up for by a burst, which buffers might not hold.
  double next = seconds_now(), end = next;
  std::size_t answered = 0;
  while (answered < out.size() && (sent.size() < out.size() || seconds_now() < end)) {
    if (sent.size() < out.size() && seconds_now() >= next) {
      int number = static_cast<int>(sent.size());
      sent.push_back(seconds_now());
      ::sendto(client.get(), &number, sizeof number, 0, reinterpret_cast<sockaddr*>(&there),
               sizeof there);
      next = sent.back() + options.every_seconds;
      end = sent.back() + options.wait_seconds;
    }
    pollfd wanted{client.get(), POLLIN, 0};
    if (::poll(&wanted, 1, seconds_now() < next || sent.size() == out.size() ? 1 : 0) <= 0)
      continue;
    int number;
    while (::recv(client.get(), &number, sizeof number, MSG_DONTWAIT) == sizeof number) {
      auto at = static_cast<std::size_t>(number);
      if (out[at] < 0) ++answered;
      out[at] = seconds_now() - sent[at];
      end = std::max(end, seconds_now() + options.wait_seconds);
    }
  }
  stop = true;
  echo.join();
  return out;
}

// Returns the payload bits per second of one TCP connection, measured at the receiver after a
// start-up of a third of the time.
inline double tcp_rate(Lab& lab, const std::string& from, const std::string& to, double seconds) {
  Descriptor server = socket_in(lab, to, SOCK_STREAM, 7001),
             client = socket_in(lab, from, SOCK_STREAM, 0);
  ::listen(server.get(), 1);
  std::atomic<int64_t> bytes = 0;
  std::atomic<bool> stop = false;
  std::thread reader([&] {
    Descriptor socket(::accept4(server.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::vector<char> buffer(1 << 20);
    for (;;) {
      ssize_t size = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
      if (size <= 0) return;
      bytes += size;
    }
  });
  sockaddr_in there = endpoint(lab.address(to), 7001);
  if (::connect(client.get(), reinterpret_cast<sockaddr*>(&there), sizeof there) != 0) {
    throw std::runtime_error(std::string("connect: ") + std::strerror(errno));
  }
  std::thread writer([&] {
    std::vector<char> buffer(1 << 18);
    while (!stop && ::send(client.get(), buffer.data(), buffer.size(), MSG_NOSIGNAL) > 0) {
    }
  });
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds / 3));
  double start = seconds_now();
  int64_t before = bytes;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds * 2 / 3));
  double rate = static_cast<double>(bytes - before) * 8 / (seconds_now() - start);
  stop = true;
  linger now{1, 0};  // does not wait for what is still queued
  ::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  ::shutdown(client.get(), SHUT_RDWR);
  writer.join();
  client.close();
  reader.join();
  return rate;
}

}  // namespace lockstep
