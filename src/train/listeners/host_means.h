// Averages what the machines of a run did in the last seconds, from the samples in their
// heartbeats, for metrics.jsonl and TensorBoard (docs/run-folder.md#hosts).
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "dist/liveness/failure_detector.h"

namespace lockstep {

struct HostSummary {
  std::string host;
  nlohmann::ordered_json line;  // fields of the event, without `event`, `time` and `step`
  // For TensorBoard: "cpu_share" and its value; "gpu0/use" for a GPU, "rank0/cores" for a rank.
  std::vector<std::pair<std::string, double>> scalars;
};

class HostMeans {
 public:
  // Adds those samples of `ranks`, as rank 0 knows them, that are new. Call it once a second.
  void add(const std::vector<RankSeen>& ranks);
  // Returns the means since the previous call for every host that was sampled since, ordered by the
  // rank that samples the host, and starts over.
  std::vector<HostSummary> take();

 private:
  struct Mean {  // over time
    double sum = 0, seconds = 0;
    void add(double value, double length) {  // ignores a value below 0: not known
      if (value < 0) return;
      sum += value * length;
      seconds += length;
    }
    bool is_known() const { return seconds > 0; }
    double value() const { return seconds > 0 ? sum / seconds : -1; }
  };
  struct GpuMeans {
    Mean use, memory_use, temperature, sm_megahertz, memory_megahertz, slowed, capped, watts;
    int64_t most_used_bytes = 0;
    double first_joules = -1;  // at the end of the previous interval
  };
  struct RankMeans {
    uint64_t samples = 0;  // number of the newest sample seen
    HostFigures newest;
    Mean cores, read, written;
    int64_t most_resident_bytes = 0;
  };
  struct MachineMeans {
    uint64_t samples = 0;
    MachineFigures newest;
    double seconds = 0;
    double first_joules = -1;
    int64_t least_available_bytes = 0;
    Mean cpu, cpu_watts, in, out, in_packets, out_packets, drops, errors, segments, retransmits;
    Mean disk_read, disk_written, sampler;
    std::vector<Mean> cores;
    std::vector<GpuMeans> gpus;
  };

  static void add_machine(const MachineFigures& figures, MachineMeans& means);
  HostSummary summary(int leader, const MachineMeans& means) const;
  void add_cores(const MachineMeans& means, HostSummary& out) const;
  void add_ranks(HostSummary& out) const;
  static void add_network(const MachineMeans& means, HostSummary& out);
  static void add_gpus(const MachineMeans& means, HostSummary& out);
  int leader_of(const std::string& host) const;

  std::vector<std::string> hosts_;        // by rank
  std::map<int, RankMeans> ranks_;        // by rank
  std::map<int, MachineMeans> machines_;  // by the rank that samples it
};

}  // namespace lockstep
