#include "report/run/host_history.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/run/read_json.h"

namespace lockstep {

namespace {

constexpr double kNoSample = std::numeric_limits<double>::quiet_NaN();

// Returns NaN where the key is absent.
double sample(const ReadJson& line, const char* key) { return number(line, key, kNoSample); }

GpuRow gpu_row(const ReadJson& gpu) {
  return {.use = sample(gpu, "use"),
          .memory_bytes = sample(gpu, "memory_bytes"),
          .memory_used_bytes = sample(gpu, "memory_used_bytes"),
          .watts = sample(gpu, "watts"),
          .joules = sample(gpu, "joules"),
          .temperature = sample(gpu, "temperature"),
          .sm_megahertz = sample(gpu, "sm_megahertz"),
          .most_sm_megahertz = sample(gpu, "most_sm_megahertz"),
          .slowed = sample(gpu, "slowed_share"),
          .capped = sample(gpu, "capped_share")};
}

HostRow host_row(const ReadJson& line) {
  HostRow row{
      .time = sample(line, "time"),
      .seconds = sample(line, "seconds"),
      .cpu_share = sample(line, "cpu_share"),
      .busiest_core = sample(line, "cpu_busiest_core_share"),
      .idlest_core = sample(line, "cpu_idlest_core_share"),
      .cores = sample(line, "cpu_cores"),
      .usable_cores = sample(line, "cpu_usable_cores"),
      .cpu_watts = sample(line, "cpu_watts"),
      .cpu_joules = sample(line, "cpu_joules"),
      .memory_bytes = sample(line, "memory_bytes"),
      .memory_available_bytes = sample(line, "memory_available_bytes"),
      .in_bytes = sample(line, "in_bytes_per_second"),
      .out_bytes = sample(line, "out_bytes_per_second"),
      .link_bytes = sample(line, "link_bytes_per_second"),
      .packets = sample(line, "in_packets_per_second") + sample(line, "out_packets_per_second"),
      .drops = sample(line, "drops_per_second"),
      .errors = sample(line, "errors_per_second"),
      .segments = sample(line, "tcp_segments_per_second"),
      .retransmits = sample(line, "tcp_retransmits_per_second"),
      .disk_read_bytes = sample(line, "disk_read_bytes_per_second"),
      .disk_written_bytes = sample(line, "disk_written_bytes_per_second"),
      .sampler_share = sample(line, "sampler_share"),
      .gpus = {},
      .ranks = {}};
  for (const ReadJson& gpu : line.value("gpus", ReadJson::array()))
    row.gpus.push_back(gpu_row(gpu));
  for (const ReadJson& rank : line.value("ranks", ReadJson::array())) {
    row.ranks.push_back({.rank = rank.value("rank", 0),
                         .cores = sample(rank, "cores"),
                         .memory_bytes = sample(rank, "memory_bytes")});
  }
  return row;
}

}  // namespace

double HostSeries::seconds() const {
  double out = 0;
  for (const HostRow& row : rows) out += row.seconds;
  return out;
}

double HostSeries::mean(const Value& value) const {
  double sum = 0, seconds = 0;
  for (const HostRow& row : rows) {
    const double x = value(row);
    if (!std::isfinite(x)) continue;
    sum += x * row.seconds;
    seconds += row.seconds;
  }
  return seconds > 0 ? sum / seconds : kNoSample;
}

double HostSeries::most(const Value& value) const {
  double out = kNoSample;
  for (const HostRow& row : rows) out = std::fmax(out, value(row));  // fmax ignores NaN
  return out;
}

double HostSeries::least(const Value& value) const {
  double out = kNoSample;
  for (const HostRow& row : rows) out = std::fmin(out, value(row));
  return out;
}

double HostSeries::sum(const Value& value) const {
  double out = 0;
  for (const HostRow& row : rows) {
    const double x = value(row);
    if (std::isfinite(x)) out += x;
  }
  return out;
}

double HostSeries::share_above(const Value& value, double limit) const {
  double above = 0, seconds = 0;
  for (const HostRow& row : rows) {
    const double x = value(row);
    if (!std::isfinite(x)) continue;
    seconds += row.seconds;
    if (x >= limit) above += row.seconds;
  }
  return seconds > 0 ? above / seconds : 0;
}

void HostHistory::add(const ReadJson& line) {
  const std::string name = word(line, "host");
  HostRow row = host_row(line);
  if (!std::isfinite(row.time) || !(row.seconds > 0)) return;
  auto same = [&](const HostSeries& host) { return host.name == name; };
  auto host = std::find_if(hosts.begin(), hosts.end(), same);
  if (host == hosts.end()) {
    host = hosts.insert(host, HostSeries{.name = name, .interface = "", .gpus = {}, .rows = {}});
  }
  host->interface = word(line, "interface");
  host->gpus.clear();
  for (const ReadJson& gpu : line.value("gpus", ReadJson::array()))
    host->gpus.push_back(word(gpu, "name"));
  host->rows.push_back(std::move(row));
}

}  // namespace lockstep
