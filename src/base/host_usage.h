// How much of this machine is used, and by this process: cores, memory, network, disks, power,
// GPUs. From /proc and /sys of Linux and from NVML; what cannot be read there stays at its default.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu_energy.h"
#include "base/gpu_monitor.h"
#include "base/machine_figures.h"
#include "base/proc_files.h"

namespace lockstep {

// Of every rank. Trivially copyable: it travels between ranks. Rates are means since the sample
// before.
struct HostFigures {
  uint64_t samples = 0;         // taken so far
  double seconds = 0;           // since the sample before
  double process_cores = 0;     // that this process kept busy: 1.5 is one and a half
  double machine_share = 0;     // of all cores that anybody kept busy, 0 to 1
  int32_t cores = 0;            // of the machine
  int32_t usable_cores = 0;     // by this process (its CPU mask)
  double core_limit = 0;        // of its control group, in cores; 0: none
  uint64_t cores_id = 0;        // equal for processes that share the same usable cores
  int64_t resident_bytes = 0;   // of this process
  int64_t available_bytes = 0;  // of the machine: could be had without swapping
  int64_t memory_bytes = 0;     // of the machine
  char interface[16] = {};      // watched; empty: none
  double in_bytes_per_second = 0, out_bytes_per_second = 0;        // of the interface
  double link_bytes_per_second = 0;                                // its speed; 0: it does not say
  double retransmits_per_second = 0;                               // TCP segments, of the machine
  double read_bytes_per_second = 0, written_bytes_per_second = 0;  // by this process, of disks
};

struct HostUsageOptions {
  std::string interface;              // whose traffic counts ("eth0"), or empty
  bool machine = true;                // also what MachineFigures has
  std::string root;                   // in front of /proc and /sys, for tests
  std::string nvml = nvml_library();  // GpuMonitor's; counts with `machine` only
};

// For one thread.
class HostUsage {
 public:
  // With `machine` it loads the GPUs' library, which may take a second.
  explicit HostUsage(HostUsageOptions options);
  // Rates count from the sample before, the first ones from the constructor. Costs some 100 us,
  // with GPUs some ms; benchmarks/host_sampler.cpp measures it.
  HostFigures sample();

  // Of the newest sample; with samples = 0 where the options do not ask for it.
  const MachineFigures& machine() const { return machine_; }
  // Share of each core that was busy between the two newest samples, 0 to 1, by core number.
  const std::vector<double>& busy_cores() const { return busy_cores_; }

 private:
  struct Counters {
    std::chrono::steady_clock::time_point time;
    double process_seconds = 0;  // of CPU
    CpuTicks ticks;
    InterfaceCounters net;
    TcpCounters tcp;
    DiskCounters process_disks, disks;
  };
  std::string file(const std::string& path) const { return small_file(options_.root + path); }
  Counters read_counters();
  bool is_whole_disk(std::string_view name);
  void read_slow_figures();
  void sample_machine(const HostFigures& own, const Counters& now);

  HostUsageOptions options_;
  Counters before_;
  std::vector<double> busy_cores_;
  uint64_t samples_ = 0;
  // What hardly changes, or is slow to read: every 30 samples.
  double link_bytes_per_second_ = 0, core_limit_ = 0;
  uint64_t cores_id_ = 0;
  std::map<std::string, bool, std::less<>> disks_;  // seen: does it count?
  MachineFigures machine_;
  CpuEnergy energy_;
  GpuMonitor gpus_;
};

// Of the file system that holds `folder`, for this user; -1: not known. May block where that is a
// network's.
int64_t free_disk_bytes(const std::string& folder);

}  // namespace lockstep
