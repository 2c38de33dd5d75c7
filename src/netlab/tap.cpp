#include "netlab/tap.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace lockstep {

namespace {

Descriptor control_socket() {
  Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.open()) throw MachineError("cannot open a socket: {}", std::strerror(errno));
  return socket;
}

ifreq request_for(const std::string& interface) {
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  return request;
}

void change(int socket, unsigned long what, ifreq& request, const char* name) {
  if (::ioctl(socket, what, &request) == 0) return;
  throw MachineError("cannot set the {} of interface {}: {}", name, request.ifr_name,
                     std::strerror(errno));
}

sockaddr_in ip_address(const std::string& text) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (::inet_pton(AF_INET, text.c_str(), &address.sin_addr) != 1) {
    throw ConfigError("\"{}\" is no IPv4 address", text);
  }
  return address;
}

void set_address(int socket, const TapOptions& options) {
  ifreq request = request_for(options.name);
  sockaddr_in address = ip_address(options.address);
  std::memcpy(&request.ifr_addr, &address, sizeof address);
  change(socket, SIOCSIFADDR, request, "address");
  address.sin_addr.s_addr = htonl(~0u << (32 - options.prefix));
  std::memcpy(&request.ifr_netmask, &address, sizeof address);
  change(socket, SIOCSIFNETMASK, request, "netmask");
}

// The speed is only shown to people and programs, so a kernel that refuses it is no failure.
void show_speed(int socket, const TapOptions& options) {
  ethtool_cmd settings{};
  settings.cmd = ETHTOOL_SSET;
  settings.duplex = DUPLEX_FULL;
  ethtool_cmd_speed_set(&settings, static_cast<uint32_t>(std::max(1.0, options.speed_mbit)));
  ifreq request = request_for(options.name);
  request.ifr_data = reinterpret_cast<char*>(&settings);
  (void)::ioctl(socket, SIOCETHTOOL, &request);
}

}  // namespace

Descriptor open_tap(const TapOptions& options) {
  Descriptor tap(::open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!tap.open()) {
    MachineError error("cannot open /dev/net/tun: {}", std::strerror(errno));
    error.set_advice("modprobe tun; in a container: --device /dev/net/tun --cap-add NET_ADMIN");
    throw error;
  }
  ifreq request = request_for(options.name);
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  if (::ioctl(tap.get(), TUNSETIFF, &request) != 0) {
    throw MachineError("cannot make the interface {}: {}", options.name, std::strerror(errno));
  }
  Descriptor socket = control_socket();
  request = request_for(options.name);
  request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
  std::copy(options.mac.begin(), options.mac.end(), request.ifr_hwaddr.sa_data);
  change(socket.get(), SIOCSIFHWADDR, request, "Ethernet address");
  request = request_for(options.name);
  request.ifr_mtu = options.mtu;
  change(socket.get(), SIOCSIFMTU, request, "MTU");
  if (!options.address.empty()) set_address(socket.get(), options);
  if (options.speed_mbit > 0) show_speed(socket.get(), options);
  bring_up(options.name);
  return tap;
}

void set_large_frames(int tap, bool large) {
  unsigned long offloads = TUN_F_CSUM;
  if (large) offloads |= TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
  if (::ioctl(tap, TUNSETOFFLOAD, offloads) != 0) {
    throw MachineError("cannot set the offloads of a TAP interface: {}", std::strerror(errno));
  }
}

void set_largest_frame(const std::string& interface, int bytes) {
  struct {
    nlmsghdr header{};
    ifinfomsg link{};
    rtattr attribute{};
    uint32_t value = 0;
  } message;
  message.header.nlmsg_len = sizeof message;
  message.header.nlmsg_type = RTM_NEWLINK;
  message.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  message.link.ifi_index = static_cast<int>(::if_nametoindex(interface.c_str()));
  message.attribute.rta_type = IFLA_GSO_MAX_SIZE;
  message.attribute.rta_len = RTA_LENGTH(sizeof message.value);
  message.value = static_cast<uint32_t>(bytes);
  Descriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  struct {
    nlmsghdr header{};
    nlmsgerr error{};
    char rest[256];
  } answer;
  if (!socket.open() || ::send(socket.get(), &message, sizeof message, 0) < 0 ||
      ::recv(socket.get(), &answer, sizeof answer, 0) < 0) {
    throw MachineError("cannot limit the frames of {}: {}", interface, std::strerror(errno));
  }
  if (answer.error.error != 0) {
    throw MachineError("cannot limit the frames of {}: {}", interface,
                       std::strerror(-answer.error.error));
  }
}

void bring_up(const std::string& interface) {
  Descriptor socket = control_socket();
  ifreq request = request_for(interface);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  change(socket.get(), SIOCSIFFLAGS, request, "flags");
}

void add_neighbour(const std::string& interface, const std::string& address,
                   const MacAddress& mac) {
  Descriptor socket = control_socket();
  arpreq request{};
  sockaddr_in ip = ip_address(address);
  std::memcpy(&request.arp_pa, &ip, sizeof ip);
  request.arp_ha.sa_family = ARPHRD_ETHER;
  std::copy(mac.begin(), mac.end(), request.arp_ha.sa_data);
  request.arp_flags = ATF_PERM | ATF_COM;
  interface.copy(request.arp_dev, sizeof request.arp_dev - 1);
  if (::ioctl(socket.get(), SIOCSARP, &request) != 0) {
    throw MachineError("cannot make {} known on {}: {}", address, interface, std::strerror(errno));
  }
}

InNetworkNamespace::InNetworkNamespace(int network_namespace)
    : before_(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {
  if (!before_.open() || ::setns(network_namespace, CLONE_NEWNET) != 0) {
    throw MachineError("cannot enter a network namespace: {}", std::strerror(errno));
  }
}

InNetworkNamespace::~InNetworkNamespace() {
  if (::setns(before_.get(), CLONE_NEWNET) != 0) std::abort();  // this thread must not go on
}

}  // namespace lockstep
