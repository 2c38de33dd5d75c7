// How much of this machine is used, and by this process: cores, memory, network. From /proc and
// /sys of Linux; what cannot be read there stays at its default. GPU figures will join the same
// struct (NVML).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

// Trivially copyable: it travels between ranks. Rates are means since the sample before.
struct HostFigures {
  double process_cores = 0;     // that this process kept busy: 1.5 is one and a half
  double machine_share = 0;     // of all cores that anybody kept busy, 0 to 1
  int32_t cores = 0;            // of the machine
  int32_t usable_cores = 0;     // by this process (its CPU mask)
  int64_t resident_bytes = 0;   // of this process
  int64_t available_bytes = 0;  // of the machine: could be had without swapping
  int64_t memory_bytes = 0;     // of the machine
  char interface[16] = {};      // watched; empty: none
  double in_bytes_per_second = 0, out_bytes_per_second = 0;  // of the interface
  double link_bytes_per_second = 0;                          // its speed; 0: it does not say
  double retransmits_per_second = 0;                         // TCP segments, of the machine
};

class HostUsage {
 public:
  // `interface`: whose traffic counts ("eth0"), or empty.
  explicit HostUsage(std::string interface);
  // Rates count from the sample before, the first ones from the constructor. Costs some 100 us.
  HostFigures sample();

  // Share of each core that was busy between the two newest samples, 0 to 1, by core number.
  const std::vector<double>& busy_cores() const { return busy_cores_; }

 private:
  struct Counters {
    std::chrono::steady_clock::time_point time;
    double process_seconds = 0;         // of CPU
    std::vector<uint64_t> busy, total;  // ticks: of all cores first, then core by core
    uint64_t in_bytes = 0, out_bytes = 0, retransmits = 0;
  };
  Counters read_counters() const;

  std::string interface_;
  Counters before_;
  std::vector<double> busy_cores_;
};

// Of the file system that holds `folder`, for this user; -1: not known. May block where that is a
// network's.
int64_t free_disk_bytes(const std::string& folder);

}  // namespace lockstep
