// What one machine does, as plain numbers that travel between ranks: one rank of each machine
// samples them (base/host_sampler.h). docs/run-folder.md#hosts has them with their units.
#pragma once

#include <cstdint>

namespace lockstep {

inline constexpr int kMostGpus = 8;     // of a machine; others are left out
inline constexpr int kMostCores = 256;  // whose use is told one by one, a byte each

// By NVML; below 0: the driver does not say.
struct GpuFigures {
  char name[48] = {};
  float use = -1;         // share of the time in which a kernel ran, 0 to 1
  float memory_use = -1;  // share of the time in which its memory was read or written
  float watts = -1, limit_watts = -1;
  float temperature = -1;  // degrees Celsius
  float sm_megahertz = -1, most_sm_megahertz = -1, memory_megahertz = -1;
  float slowed = -1;  // 1: clocks are held down by heat or by the power supply; else 0
  float capped = -1;  // 1: clocks are held down by the power limit; else 0
  int64_t memory_bytes = 0, memory_used_bytes = 0;
  double joules = 0;  // since the sampler began
};

// Trivially copyable. Rates and shares are means since the sample before.
struct MachineFigures {
  uint64_t samples = 0;  // taken so far; 0: this rank does not sample its machine
  double seconds = 0;    // since the sample before
  double cpu_share = 0;  // of all cores that anybody kept busy, 0 to 1
  int32_t cores = 0;
  uint8_t core_percent[kMostCores] = {};  // busy, by core number
  double cpu_watts = -1;                  // of all processor packages; below 0: not readable
  double cpu_joules = 0;                  // since the sampler began
  int64_t memory_bytes = 0, available_bytes = 0;
  char interface[16] = {};           // watched; empty: none
  double link_bytes_per_second = 0;  // its speed; 0: it does not say
  double in_bytes_per_second = 0, out_bytes_per_second = 0;
  double in_packets_per_second = 0, out_packets_per_second = 0;
  double drops_per_second = 0, errors_per_second = 0;          // of packets, both ways
  double segments_per_second = 0, retransmits_per_second = 0;  // TCP, of the machine
  double disk_read_bytes_per_second = 0, disk_written_bytes_per_second = 0;
  double sampler_share = 0;  // of one core that taking these figures took
  int32_t gpus = 0;
  GpuFigures gpu[kMostGpus];
};

}  // namespace lockstep
