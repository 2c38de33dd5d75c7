#include "report/host_history.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep {

namespace {

using Json = nlohmann::json;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double number(const Json& json, const char* key) {
  auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : kNone;
}

std::string text(const Json& json, const char* key) {
  auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

GpuRow gpu_row(const Json& gpu) {
  return {.use = number(gpu, "use"),
          .memory_bytes = number(gpu, "memory_bytes"),
          .memory_used_bytes = number(gpu, "memory_used_bytes"),
          .watts = number(gpu, "watts"),
          .joules = number(gpu, "joules"),
          .temperature = number(gpu, "temperature"),
          .sm_megahertz = number(gpu, "sm_megahertz"),
          .most_sm_megahertz = number(gpu, "most_sm_megahertz"),
          .slowed = number(gpu, "slowed_share"),
          .capped = number(gpu, "capped_share")};
}

HostRow host_row(const Json& line) {
  HostRow row{
      .time = number(line, "time"),
      .seconds = number(line, "seconds"),
      .cpu_share = number(line, "cpu_share"),
      .busiest_core = number(line, "cpu_busiest_core_share"),
      .idlest_core = number(line, "cpu_idlest_core_share"),
      .cores = number(line, "cpu_cores"),
      .usable_cores = number(line, "cpu_usable_cores"),
      .cpu_watts = number(line, "cpu_watts"),
      .cpu_joules = number(line, "cpu_joules"),
      .memory_bytes = number(line, "memory_bytes"),
      .memory_available_bytes = number(line, "memory_available_bytes"),
      .in_bytes = number(line, "in_bytes_per_second"),
      .out_bytes = number(line, "out_bytes_per_second"),
      .link_bytes = number(line, "link_bytes_per_second"),
      .packets = number(line, "in_packets_per_second") + number(line, "out_packets_per_second"),
      .drops = number(line, "drops_per_second"),
      .errors = number(line, "errors_per_second"),
      .segments = number(line, "tcp_segments_per_second"),
      .retransmits = number(line, "tcp_retransmits_per_second"),
      .disk_read_bytes = number(line, "disk_read_bytes_per_second"),
      .disk_written_bytes = number(line, "disk_written_bytes_per_second"),
      .sampler_share = number(line, "sampler_share"),
      .gpus = {},
      .ranks = {}};
  for (const Json& gpu : line.value("gpus", Json::array())) row.gpus.push_back(gpu_row(gpu));
  for (const Json& rank : line.value("ranks", Json::array())) {
    row.ranks.push_back({.rank = rank.value("rank", 0),
                         .cores = number(rank, "cores"),
                         .memory_bytes = number(rank, "memory_bytes")});
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
  return seconds > 0 ? sum / seconds : kNone;
}

double HostSeries::most(const Value& value) const {
  double out = kNone;
  for (const HostRow& row : rows) out = std::fmax(out, value(row));  // passes NaN over
  return out;
}

double HostSeries::least(const Value& value) const {
  double out = kNone;
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

void HostHistory::add(const Json& line) {
  const std::string name = text(line, "host");
  HostRow row = host_row(line);
  if (!std::isfinite(row.time) || !(row.seconds > 0)) return;
  auto same = [&](const HostSeries& host) { return host.name == name; };
  auto host = std::find_if(hosts.begin(), hosts.end(), same);
  if (host == hosts.end()) {
    host = hosts.insert(host, HostSeries{.name = name, .interface = "", .gpus = {}, .rows = {}});
  }
  host->interface = text(line, "interface");
  host->gpus.clear();
  for (const Json& gpu : line.value("gpus", Json::array())) host->gpus.push_back(text(gpu, "name"));
  host->rows.push_back(std::move(row));
}

}  // namespace lockstep
