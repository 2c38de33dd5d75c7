// Finds the address by which this machine reaches others, and opens the socket that the store
// listens on. Knows nothing of torch or ranks.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <string>
#include <vector>

namespace lockstep {

struct LocalAddress {
  std::string address;    // numeric, IPv4 or IPv6
  std::string interface;  // "eth0"; "lo" for loopback
  bool loopback = false;
};

// Returns the local end of the route to `host`: the kernel's routing table decides, not the order
// of interfaces, so that docker0 or a hostname that /etc/hosts maps to 127.0.1.1 is never chosen
// for a peer elsewhere. Sends nothing. Throws MachineError when the name does not resolve or no
// route exists.
LocalAddress local_address_towards(const std::string& host);

// Returns the address of a network interface of this machine: IPv4 if it has one.
// Throws ConfigError, naming the existing interfaces, when there is none of this
// name or it has no address.
LocalAddress address_of_interface(const std::string& name);

// Returns the numeric addresses of this machine's interfaces, without loopback.
std::vector<std::string> own_addresses();

// Whether a numeric address belongs to this machine: to an interface, or loopback.
bool is_own_address(const std::string& numeric);

// Return the numeric addresses of a host name; none when it does not resolve. addresses_elsewhere
// leaves out loopback (127.0.0.0/8, ::1).
std::vector<std::string> addresses_of(const std::string& host);
std::vector<std::string> addresses_elsewhere(const std::string& host);

// What an error of listen_on() says: who cannot listen, and what to do about a port in use or an
// address that is not this machine's.
struct ListenWords {
  std::string who = "rank 0";
  std::string port_in_use = "end it or set MASTER_PORT to a free one";
  std::string no_address = "MASTER_ADDR must be an address of rank 0's machine";
};

// Returns a TCP socket that listens on `host` (an address of this machine) and `port` (0: any free
// one). The caller owns the descriptor. Throws MachineError that names host:port.
int listen_on(const std::string& host, int port, const ListenWords& words = {});

// Returns the port that a listening socket got.
int port_of(int socket);

// Lets a TCP socket send what is written at once.
void send_promptly(int socket);

// Lets a TCP socket send what a cut of the network took again within a second of its end: left
// alone, TCP waits twice as long after each try, so that two short cuts make one long silence
// (TCP_RTO_MAX_MS, since Linux 6.15; before that as ever). For small messages: where a round trip
// takes longer, behind the buffers of a slow line, all of it is sent twice.
void try_again_soon(int socket);

// Connects a socket that does not block, until `end` at the latest. Returns 0, or errno of why it
// is not connected. Signals do not end the wait.
int connect_until(std::chrono::steady_clock::time_point end, int socket, const sockaddr* to,
                  socklen_t length);

// Returns the time left for poll(), rounded up; 0 when it is over.
int milliseconds_until(std::chrono::steady_clock::time_point end);

// Connects to a numeric address within some seconds; returns a socket that does not block. Throws
// MachineError; `what` is there: "rank 0's heartbeat".
int connect_to(const std::string& address, int port, double seconds, const std::string& what);

}  // namespace lockstep
