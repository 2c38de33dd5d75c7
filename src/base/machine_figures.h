// The resource usage of one machine as plain numbers that ranks send to each other. One rank of
// each machine samples them (base/host_sampler.h). docs/run-folder.md#hosts lists them with their
// units.
#pragma once

#include <cstdint>

namespace lockstep {

inline constexpr int kMostGpus = 8;     // per machine; further GPUs are left out
inline constexpr int kMostCores = 256;  // cores with a figure of their own, one byte each

// The figures of one GPU, from NVML. A value below 0 means that the driver does not report it.
struct GpuFigures {
  char name[48] = {};
  float use = -1;         // share of the time in which a kernel ran, 0 to 1
  float memory_use = -1;  // share of the time in which its memory was read or written
  float watts = -1, limit_watts = -1;
  float temperature = -1;  // degrees Celsius
  float sm_megahertz = -1, most_sm_megahertz = -1, memory_megahertz = -1;
  float slowed = -1;  // 1: heat or the power supply holds the clocks down; else 0
  float capped = -1;  // 1: the power limit holds the clocks down; else 0
  int64_t memory_bytes = 0, memory_used_bytes = 0;
  double joules = 0;  // since the sampler started
};

// The figures of one machine. Trivially copyable. Rates and shares are means since the previous
// sample.
struct MachineFigures {
  uint64_t samples = 0;  // how many were taken so far; 0: this rank does not sample its machine
  double seconds = 0;    // since the previous sample
  double cpu_share = 0;  // share of all cores that any process kept busy, 0 to 1
  int32_t cores = 0;
  uint8_t core_percent[kMostCores] = {};  // how busy each core was, by core number
  double cpu_watts = -1;                  // of all processor packages; below 0: unreadable
  double cpu_joules = 0;                  // since the sampler started
  int64_t memory_bytes = 0, available_bytes = 0;
  char interface[16] = {};           // the network interface that is measured; empty: none
  double link_bytes_per_second = 0;  // of the interface; 0: unknown
  double in_bytes_per_second = 0, out_bytes_per_second = 0;
  double in_packets_per_second = 0, out_packets_per_second = 0;
  double drops_per_second = 0, errors_per_second = 0;          // of packets, in both directions
  double segments_per_second = 0, retransmits_per_second = 0;  // TCP, of the machine
  double disk_read_bytes_per_second = 0, disk_written_bytes_per_second = 0;
  double sampler_share = 0;  // of one core: the cost of taking these figures
  int32_t gpus = 0;
  GpuFigures gpu[kMostGpus];
};

}  // namespace lockstep
