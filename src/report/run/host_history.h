// The lines of the event `host` of metrics.jsonl (docs/run-folder.md#hosts) as rows of each host:
// what every machine of a run did over the whole run.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// Units as in docs/run-folder.md#hosts. NaN: the line does not say.
struct GpuRow {
  double use, memory_bytes, memory_used_bytes, watts, joules, temperature;
  double sm_megahertz, most_sm_megahertz, slowed, capped;
};

struct RankUseRow {
  int rank = 0;
  double cores, memory_bytes;
};

struct HostRow {
  double time = 0, seconds = 0;  // it tells of the seconds before time
  double cpu_share, busiest_core, idlest_core, cores, usable_cores, cpu_watts, cpu_joules;
  double memory_bytes, memory_available_bytes;
  double in_bytes, out_bytes, link_bytes;  // a second
  double packets, drops, errors;           // a second, both ways
  double segments, retransmits;            // a second
  double disk_read_bytes, disk_written_bytes;
  double sampler_share;
  std::vector<GpuRow> gpus;
  std::vector<RankUseRow> ranks;
};

struct HostSeries {
  std::string name, interface;
  std::vector<std::string> gpus;  // their names, of the newest line
  std::vector<HostRow> rows;      // by time

  double seconds() const;  // that the rows tell of
  // Over time, of the rows that say it; NaN when none does.
  using Value = std::function<double(const HostRow&)>;
  double mean(const Value& value) const;
  double most(const Value& value) const;
  double least(const Value& value) const;
  double sum(const Value& value) const;  // 0 when none says it
  // Of the time of the rows that say it, in which it is at least `limit`.
  double share_above(const Value& value, double limit) const;
};

struct HostHistory {
  std::vector<HostSeries> hosts;  // in the order of their first lines
  bool empty() const { return hosts.empty(); }
  void add(const nlohmann::json& line);
};

}  // namespace lockstep
