#include "dist/rank/network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList resolve(const std::string& host, int port, int kind) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = kind;
  addrinfo* found = nullptr;
  int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) {
    MachineError error("the host name \"{}\" does not resolve on this machine", host);
    error.set_cause(gai_strerror(code));
    error.set_advice("give the numeric address of rank 0's machine, or add the name to /etc/hosts");
    throw error;
  }
  return AddressList(found, &freeaddrinfo);
}

std::string numeric(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST];
  if (getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
  return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

// Calls `f` for each address of a host name; none when it does not resolve.
template <typename Visitor>
void each_address_of(const std::string& host, const Visitor& f) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return;
  AddressList list(found, &freeaddrinfo);
  for (const addrinfo* it = list.get(); it != nullptr; it = it->ai_next) f(*it);
}

socklen_t length_of(const sockaddr* address) {
  return address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

// Calls `f` for every internet address of an interface. Throws MachineError when there is no list.
template <typename Visitor>
void each_address(const Visitor& f) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) throw MachineError("no interfaces: {}", std::strerror(errno));
  std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const sockaddr* a = entry->ifa_addr;
    if (a != nullptr && (a->sa_family == AF_INET || a->sa_family == AF_INET6)) f(*entry, a);
  }
}

std::string interface_of(const std::string& address) {
  std::string out;
  each_address([&](const ifaddrs& entry, const sockaddr* a) {
    if (out.empty() && numeric(a, length_of(a)) == address) out = entry.ifa_name;
  });
  return out;
}

}  // namespace

LocalAddress local_address_towards(const std::string& host) {
  // The port does not matter: connecting a datagram socket only asks the kernel for a route.
  constexpr int kDiscardPort = 9;
  AddressList list = resolve(host, kDiscardPort, SOCK_DGRAM);
  int reason = 0;
  for (addrinfo* it = list.get(); it != nullptr; it = it->ai_next) {
    Descriptor socket(::socket(it->ai_family, it->ai_socktype, it->ai_protocol));
    sockaddr_storage local{};
    auto* address = reinterpret_cast<sockaddr*>(&local);
    socklen_t length = sizeof local;
    if (!socket.open() || connect(socket.get(), it->ai_addr, it->ai_addrlen) != 0 ||
        getsockname(socket.get(), address, &length) != 0) {
      reason = errno;
      continue;
    }
    LocalAddress out;
    out.address = numeric(address, length);
    out.loopback = is_loopback(address);
    out.interface = out.loopback ? "lo" : interface_of(out.address);
    return out;
  }
  MachineError error("no route from this machine to {}", host);
  error.set_cause(std::strerror(reason));
  error.set_advice("check the address of rank 0's machine and that the network is up");
  throw error;
}

LocalAddress address_of_interface(const std::string& name) {
  LocalAddress found;
  std::vector<std::string> names;
  bool version_4 = false;
  each_address([&](const ifaddrs& entry, const sockaddr* a) {
    if (names.empty() || names.back() != entry.ifa_name) names.emplace_back(entry.ifa_name);
    if (name != entry.ifa_name || version_4) return;
    version_4 = a->sa_family == AF_INET;
    if (!version_4 && !found.address.empty()) return;
    found = {numeric(a, length_of(a)), name, is_loopback(a)};
  });
  if (!found.address.empty()) return found;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  throw ConfigError("no interface \"{}\" with an address on this machine{}; it has {}", name,
                    did_you_mean(name, names), join(names, ", "));
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> out;
  each_address([&](const ifaddrs&, const sockaddr* address) {
    if (!is_loopback(address)) out.push_back(numeric(address, length_of(address)));
  });
  return out;
}

bool is_own_address(const std::string& numeric) {
  if (numeric.starts_with("127.") || numeric == "::1") return true;
  const std::vector<std::string> own = own_addresses();
  return std::find(own.begin(), own.end(), numeric) != own.end();
}

std::vector<std::string> addresses_of(const std::string& host) {
  std::vector<std::string> out;
  each_address_of(host,
                  [&](const addrinfo& a) { out.push_back(numeric(a.ai_addr, a.ai_addrlen)); });
  return out;
}

std::vector<std::string> addresses_elsewhere(const std::string& host) {
  std::vector<std::string> out;
  each_address_of(host, [&](const addrinfo& a) {
    if (!is_loopback(a.ai_addr)) out.push_back(numeric(a.ai_addr, a.ai_addrlen));
  });
  return out;
}

int listen_on(const std::string& host, int port, const ListenWords& words) {
  AddressList list = resolve(host, port, SOCK_STREAM);
  const addrinfo* first = list.get();
  Descriptor socket(
      ::socket(first->ai_family, first->ai_socktype | SOCK_CLOEXEC, first->ai_protocol));
  // A port whose last user has just gone stays in TIME_WAIT: a restart may use it all the same.
  int yes = 1;
  if (socket.open()) setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (!socket.open() || bind(socket.get(), first->ai_addr, first->ai_addrlen) != 0 ||
      listen(socket.get(), SOMAXCONN) != 0) {
    int reason = errno;
    MachineError error("{} cannot listen on {}:{}", words.who, host, port);
    error.set_cause(std::strerror(reason));
    error.set_advice(reason == EADDRINUSE
                         ? "another program or an earlier run holds this port; " + words.port_in_use
                         : words.no_address);
    throw error;
  }
  return socket.release();
}

int port_of(int socket) {
  sockaddr_storage local{};
  socklen_t length = sizeof local;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&local), &length) != 0) {
    throw MachineError("descriptor {} is not a socket: {}", socket, std::strerror(errno));
  }
  if (local.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&local)->sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in*>(&local)->sin_port);
}

void send_promptly(int socket) {
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

void try_again_soon(int socket) {
  constexpr int kTcpRtoMaxMs = 44;  // of linux/tcp.h, which may be older than the kernel
  const int milliseconds = 1000;    // the least that it takes
  ::setsockopt(socket, IPPROTO_TCP, kTcpRtoMaxMs, &milliseconds, sizeof milliseconds);
}

int milliseconds_until(Clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

int connect_until(Clock::time_point end, int socket, const sockaddr* to, socklen_t length) {
  if (connect(socket, to, length) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  pollfd wanted{socket, POLLOUT, 0};
  int ready = 0;
  do {
    ready = poll(&wanted, 1, milliseconds_until(end));
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) return ETIMEDOUT;
  int reason = 0;
  socklen_t size = sizeof reason;
  return ready < 0 || getsockopt(socket, SOL_SOCKET, SO_ERROR, &reason, &size) != 0 ? errno
                                                                                    : reason;
}

int connect_to(const std::string& address, int port, double seconds, const std::string& what) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  int code = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) throw MachineError("\"{}\" is no address: {}", address, gai_strerror(code));
  AddressList owner(found, &freeaddrinfo);
  Descriptor socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto end = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  const int reason =
      socket.open() ? connect_until(end, socket.get(), found->ai_addr, found->ai_addrlen) : errno;
  if (reason == 0) return socket.release();
  MachineError error("cannot connect to {} at {}:{}", what, address, port);
  error.set_cause(std::strerror(reason));
  error.set_advice("let all TCP ports through between the machines' private addresses");
  throw error;
}

}  // namespace lockstep
