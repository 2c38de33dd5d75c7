// What Linux tells in files of /proc and /sys, taken apart: functions of their text alone, so that
// tests feed them files of other machines. Sources: proc(5); of the kernel's documentation
// admin-guide/iostats.rst (disks), admin-guide/cgroup-v2.rst (cpu.max) and
// power/powercap/powercap.rst (energy). What a text does not say stays 0.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// The whole file; empty when it is not there, may not be read, or says nothing (the speed of a
// loopback). Unlike read_file no error: absent is normal here.
std::string small_file(const std::string& path);

// Of /proc/stat, in ticks since the start: [0] is of all cores, [1 + n] of core n; a core that is
// offline has a total of 0.
struct CpuTicks {
  std::vector<uint64_t> busy, total;
};
CpuTicks parse_cpu_ticks(std::string_view stat);

// Of one line of /proc/net/dev.
struct InterfaceCounters {
  uint64_t in_bytes = 0, in_packets = 0, in_errors = 0, in_drops = 0;
  uint64_t out_bytes = 0, out_packets = 0, out_errors = 0, out_drops = 0;
};
InterfaceCounters parse_interface(std::string_view net_dev, const std::string& name);

// Of /proc/net/snmp, of all connections of the machine: segments sent, and those sent again.
struct TcpCounters {
  uint64_t sent = 0, retransmitted = 0;
};
TcpCounters parse_tcp(std::string_view snmp);

struct DiskCounters {
  uint64_t read_bytes = 0, written_bytes = 0;
};
// Of /proc/diskstats, the disks for which `counts(name)` holds: partitions and what is made of
// disks (md, dm) would count bytes twice.
DiskCounters parse_disks(std::string_view diskstats,
                         const std::function<bool(std::string_view)>& counts);
// Of /proc/self/io: what reached a disk or came from one, not the caches.
DiskCounters parse_process_io(std::string_view io);

// The number behind `head` in the first line that starts with it; 0: there is none.
int64_t parse_entry(std::string_view text, std::string_view head);
// The same in bytes: "MemTotal:  16 kB" -> 16384.
int64_t parse_kilobytes(std::string_view text, std::string_view head);

// A list of cores, as of a NUMA node: "0-2,8" -> 0 1 2 8.
std::vector<int> parse_core_list(std::string_view text);

// cpu.max of a control group: "150000 100000" -> 1.5 cores; 0: no limit.
double parse_core_limit(std::string_view cpu_max);

// "1234\n" -> 1234.
uint64_t parse_number(std::string_view text);

}  // namespace lockstep
