// Reads the hosts of a job in the forms that people give them: -H a:2,b:2 as for mpirun, a file
// with one host per line, or the list of instances that a cloud prints. docs/launch.md#which-hosts
// has the grammars.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

inline constexpr int kMostHosts = 4096, kMostSlots = 256;
inline constexpr int kAutoSlots = -1;  // "a:auto"

struct Host {
  std::string name;      // for messages and commands: as given, without user and slots
  std::string ssh_name;  // what ssh connects to: public name, alias of ~/.ssh/config, user@name
  std::string address;   // private address for traffic; empty: not known yet
  int slots = 1;        // ranks; kAutoSlots: as many as suit the machine (launch/job/rank_layout.h)
  bool pin = false;     // each rank there has cores of its own
  bool by_ssh = false;  // ssh was asked for (user@name, ssh=NAME), even for this machine
  double price = 0;     // of an hour; 0: not given
  bool away = false;    // it did not answer a moment ago: a start with enough others does not wait
  std::string state;    // what the cloud says: "running"; empty: unknown
};

std::string slots_text(int slots);  // "2", "auto"

struct HostList {
  std::vector<Host> hosts;  // in the order given; names, ssh names and addresses are unique
  std::string source;       // for messages: "-H", the file's path; empty: no option was given

  int ranks() const;      // sum of slots. REQUIRES !has_auto()
  bool has_auto() const;  // whether a host's slots are kAutoSlots
};

struct HostOptions {
  std::string hosts;       // -H: a:2,user@b:2,[fe80::1]:2
  std::string hosts_file;  // --hosts
  std::string instances;   // --instances
  std::string command;     // --instances-command
  int ranks_per_host = 0;  // --ranks-per-host; 0: each host's own slots, else otherwise_slots
  int otherwise_slots = 1;
};

// Throws ConfigError with place (file and line, or the word of -H) for more than one of the four
// sources, a source without hosts or without running instances, invalid names, bad numbers, and
// hosts that appear twice; MachineError when the command fails. Returns an empty list when no
// source is given.
HostList read_hosts(const HostOptions& options);

namespace detail {
// Parses a host of -H or a hosts file: [user@]name[:slots], where slots is a number or "auto" and
// an IPv6 address is in brackets. Errors begin with `place`. Slots are 0 where none were given.
Host parse_host(std::string_view text, const std::string& place);
}  // namespace detail

}  // namespace lockstep
