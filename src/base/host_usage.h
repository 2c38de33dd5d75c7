// Measures how much of this machine is used, in total and by this process: cores, memory, network,
// disks, power, GPUs. The figures come from /proc and /sys of Linux and from NVML. A figure that
// cannot be read keeps its default.
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

// The figures of one rank. Trivially copyable, because ranks send them to each other. Rates are
// means since the previous sample.
struct HostFigures {
  uint64_t samples = 0;         // how many were taken so far
  double seconds = 0;           // since the previous sample
  double process_cores = 0;     // cores that this process kept busy, e.g. 1.5
  double machine_share = 0;     // share of all cores that any process kept busy, 0 to 1
  int32_t cores = 0;            // of the machine
  int32_t usable_cores = 0;     // by this process, according to its CPU mask
  double core_limit = 0;        // of its control group, in cores; 0: no limit
  uint64_t cores_id = 0;        // equal for processes that share the same usable cores
  int64_t resident_bytes = 0;   // of this process
  int64_t available_bytes = 0;  // of the machine: memory available without swapping
  int64_t memory_bytes = 0;     // of the machine
  char interface[16] = {};      // the network interface that is measured; empty: none
  double in_bytes_per_second = 0, out_bytes_per_second = 0;        // through the interface
  double link_bytes_per_second = 0;                                // of the interface; 0: unknown
  double retransmits_per_second = 0;                               // TCP segments, of the machine
  double read_bytes_per_second = 0, written_bytes_per_second = 0;  // by this process, on disks
};

struct HostUsageOptions {
  std::string interface;              // the network interface to measure ("eth0"), or empty
  bool machine = true;                // whether to fill MachineFigures too
  std::string root;                   // prepended to /proc and /sys, for tests
  std::string nvml = nvml_library();  // passed to GpuMonitor; used only with `machine`
};

// Not thread-safe.
class HostUsage {
 public:
  // With `machine` the constructor loads the GPUs' library, which may take a second.
  explicit HostUsage(HostUsageOptions options);
  // Rates cover the time since the previous sample, or since the constructor. A sample costs some
  // 100 us, with GPUs some ms; benchmarks/host_sampler.cpp measures it.
  HostFigures sample();

  // Returns the figures of the newest sample. Their samples = 0 when the options do not ask for
  // them.
  const MachineFigures& machine() const { return machine_; }
  // Returns the share of time that each core was busy between the two newest samples, 0 to 1, by
  // core number.
  const std::vector<double>& busy_cores() const { return busy_cores_; }

 private:
  struct Counters {
    std::chrono::steady_clock::time_point time;
    double process_seconds = 0;  // CPU time
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
  // Figures that rarely change or are slow to read. They are read every 30 samples.
  double link_bytes_per_second_ = 0, core_limit_ = 0;
  uint64_t cores_id_ = 0;
  std::map<std::string, bool, std::less<>> disks_;  // disks seen so far; whether to count each
  MachineFigures machine_;
  CpuEnergy energy_;
  GpuMonitor gpus_;
};

// Returns the bytes that this user may still write to the file system of `folder`; -1: unknown. It
// may block on a network file system.
int64_t free_disk_bytes(const std::string& folder);

}  // namespace lockstep
