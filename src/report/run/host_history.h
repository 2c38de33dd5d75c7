// Reads the `host` events of metrics.jsonl (docs/run-folder.md#hosts) as rows per host: what every
// machine of a run did over the whole run.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// Units are as in docs/run-folder.md#hosts. NaN: not in the line.
struct GpuRow {
  double use, memory_bytes, memory_used_bytes, watts, joules, temperature;
  double sm_megahertz, most_sm_megahertz, slowed, capped;
};

struct RankUseRow {
  int rank = 0;
  double cores, memory_bytes;
};

struct HostRow {
  double time = 0, seconds = 0;  // covers `seconds` before `time`
  double cpu_share, busiest_core, idlest_core, cores, usable_cores, cpu_watts, cpu_joules;
  double memory_bytes, memory_available_bytes;
  double in_bytes, out_bytes, link_bytes;  // per second
  double packets, drops, errors;           // per second, both ways
  double segments, retransmits;            // per second
  double disk_read_bytes, disk_written_bytes;
  double sampler_share;
  std::vector<GpuRow> gpus;
  std::vector<RankUseRow> ranks;
};

struct HostSeries {
  std::string name, interface;
  std::vector<std::string> gpus;  // their names, from the newest line
  std::vector<HostRow> rows;      // by time

  double seconds() const;  // that the rows cover
  // These are weighted by time, over the rows that have the value; NaN when none does.
  using Value = std::function<double(const HostRow&)>;
  double mean(const Value& value) const;
  double most(const Value& value) const;
  double least(const Value& value) const;
  double sum(const Value& value) const;  // 0 when no row has it
  // The share of the time of rows with the value in which it is at least `limit`.
  double share_above(const Value& value, double limit) const;
};

struct HostHistory {
  std::vector<HostSeries> hosts;  // in the order of their first lines
  bool empty() const { return hosts.empty(); }
  void add(const nlohmann::json& line);
};

}  // namespace lockstep
