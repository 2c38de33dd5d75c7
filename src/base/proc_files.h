// Parses files of /proc and /sys of Linux. The parsers are functions of the text alone, so that
// tests can pass files of other machines. Sources: proc(5); in the kernel documentation
// admin-guide/iostats.rst (disks), admin-guide/cgroup-v2.rst (cpu.max) and
// power/powercap/powercap.rst (energy). Values that a text does not contain stay 0.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// Returns the whole file, or an empty text when it does not exist, may not be read or returns
// nothing (the speed of a loopback interface). Unlike read_file it does not throw: absence is
// normal here.
std::string small_file(const std::string& path);

// Counters of /proc/stat, in ticks since the system booted: [0] is for all cores, [1 + n] for core
// n. A core that is offline has a total of 0.
struct CpuTicks {
  std::vector<uint64_t> busy, total;
};
CpuTicks parse_cpu_ticks(std::string_view stat);

// Counters of one line of /proc/net/dev.
struct InterfaceCounters {
  uint64_t in_bytes = 0, in_packets = 0, in_errors = 0, in_drops = 0;
  uint64_t out_bytes = 0, out_packets = 0, out_errors = 0, out_drops = 0;
};
InterfaceCounters parse_interface(std::string_view net_dev, const std::string& name);

// Counters of /proc/net/snmp for all connections of the machine: segments sent and retransmitted.
struct TcpCounters {
  uint64_t sent = 0, retransmitted = 0;
};
TcpCounters parse_tcp(std::string_view snmp);

struct DiskCounters {
  uint64_t read_bytes = 0, written_bytes = 0;
};
// Adds up /proc/diskstats over the disks for which `counts(name)` is true. Partitions and virtual
// disks (md, dm) would count bytes twice.
DiskCounters parse_disks(std::string_view diskstats,
                         const std::function<bool(std::string_view)>& counts);
// Parses /proc/self/io: the bytes that were transferred to and from disks, not those of the caches.
DiskCounters parse_process_io(std::string_view io);

// Returns the number after `head` in the first line that starts with it, or 0 if there is none.
int64_t parse_entry(std::string_view text, std::string_view head);
// Does the same for a value in kB and returns bytes: "MemTotal:  16 kB" -> 16384.
int64_t parse_kilobytes(std::string_view text, std::string_view head);

// Parses a list of cores, e.g. of a NUMA node: "0-2,8" -> 0 1 2 8.
std::vector<int> parse_core_list(std::string_view text);

// Parses cpu.max of a control group: "150000 100000" -> 1.5 cores; 0 means no limit.
double parse_core_limit(std::string_view cpu_max);

// "1234\n" -> 1234.
uint64_t parse_number(std::string_view text);

}  // namespace lockstep
