#include "train/listeners/host_means.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

double rounded_to(double value, double digits) { return std::round(value * digits) / digits; }

// Adds a figure under the same name in metrics.jsonl and TensorBoard, rounded to 1 / `digits`.
void put(HostSummary& out, const std::string& name, double value, double digits) {
  out.line[name] = rounded_to(value, digits);
  out.scalars.emplace_back(name, value);
}

}  // namespace

void HostMeans::add(const std::vector<RankSeen>& ranks) {
  hosts_.resize(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const RankSeen& seen = ranks[r];
    const int rank = static_cast<int>(r);
    hosts_[r] = seen.identity.host;
    const HostFigures& usage = seen.status.usage;
    if (usage.samples > ranks_[rank].samples) {
      RankMeans& means = ranks_[rank];
      means.samples = usage.samples;
      means.newest = usage;
      means.cores.add(usage.process_cores, usage.seconds);
      means.read.add(usage.read_bytes_per_second, usage.seconds);
      means.written.add(usage.written_bytes_per_second, usage.seconds);
      means.most_resident_bytes = std::max(means.most_resident_bytes, usage.resident_bytes);
    }
    if (seen.machine.samples == 0) continue;
    MachineMeans& machine = machines_[rank];
    if (seen.machine.samples > machine.samples) add_machine(seen.machine, machine);
  }
}

void HostMeans::add_machine(const MachineFigures& m, MachineMeans& means) {
  const double s = m.seconds;
  means.samples = m.samples;
  means.newest = m;
  if (means.first_joules < 0) means.first_joules = m.cpu_joules;
  means.least_available_bytes = means.seconds > 0
                                    ? std::min(means.least_available_bytes, m.available_bytes)
                                    : m.available_bytes;
  means.seconds += s;
  means.cpu.add(m.cpu_share, s);
  means.cpu_watts.add(m.cpu_watts, s);
  means.in.add(m.in_bytes_per_second, s);
  means.out.add(m.out_bytes_per_second, s);
  means.in_packets.add(m.in_packets_per_second, s);
  means.out_packets.add(m.out_packets_per_second, s);
  means.drops.add(m.drops_per_second, s);
  means.errors.add(m.errors_per_second, s);
  means.segments.add(m.segments_per_second, s);
  means.retransmits.add(m.retransmits_per_second, s);
  means.disk_read.add(m.disk_read_bytes_per_second, s);
  means.disk_written.add(m.disk_written_bytes_per_second, s);
  means.sampler.add(m.sampler_share, s);
  means.cores.resize(static_cast<std::size_t>(std::clamp(m.cores, 0, kMostCores)));
  for (std::size_t i = 0; i < means.cores.size(); ++i) means.cores[i].add(m.core_percent[i], s);
  means.gpus.resize(static_cast<std::size_t>(std::clamp(m.gpus, 0, kMostGpus)));
  for (std::size_t i = 0; i < means.gpus.size(); ++i) {
    const GpuFigures& gpu = m.gpu[i];
    GpuMeans& g = means.gpus[i];
    if (g.first_joules < 0) g.first_joules = gpu.joules;
    g.use.add(gpu.use, s);
    g.memory_use.add(gpu.memory_use, s);
    g.watts.add(gpu.watts, s);
    g.temperature.add(gpu.temperature, s);
    g.sm_megahertz.add(gpu.sm_megahertz, s);
    g.memory_megahertz.add(gpu.memory_megahertz, s);
    g.slowed.add(gpu.slowed, s);
    g.capped.add(gpu.capped, s);
    g.most_used_bytes = std::max(g.most_used_bytes, gpu.memory_used_bytes);
  }
}

// Where several ranks sample hosts of one name (under a launcher without local ranks), the first
// leads.
int HostMeans::leader_of(const std::string& host) const {
  for (const auto& [rank, machine] : machines_) {
    if (hosts_[static_cast<std::size_t>(rank)] == host) return rank;
  }
  return -1;
}

std::vector<HostSummary> HostMeans::take() {
  std::vector<HostSummary> out;
  for (auto& [rank, machine] : machines_) {
    if (machine.seconds <= 0) continue;
    if (leader_of(hosts_[static_cast<std::size_t>(rank)]) == rank) {
      out.push_back(summary(rank, machine));
    }
    MachineMeans fresh;
    fresh.samples = machine.samples;
    fresh.newest = machine.newest;
    fresh.first_joules = machine.newest.cpu_joules;
    for (int i = 0; i < machine.newest.gpus; ++i) {
      fresh.gpus.emplace_back().first_joules = machine.newest.gpu[i].joules;
    }
    machine = std::move(fresh);
  }
  for (auto& [rank, means] : ranks_) {
    RankMeans fresh;
    fresh.samples = means.samples;
    fresh.newest = means.newest;
    means = fresh;
  }
  return out;
}

HostSummary HostMeans::summary(int leader, const MachineMeans& means) const {
  HostSummary out;
  out.host = hosts_[static_cast<std::size_t>(leader)];
  const MachineFigures& m = means.newest;
  out.line["host"] = out.host;
  out.line["seconds"] = rounded_to(means.seconds, 1e3);
  add_cores(means, out);
  out.line["memory_bytes"] = m.memory_bytes;
  out.line["memory_available_bytes"] = means.least_available_bytes;
  out.scalars.emplace_back("memory_used_bytes",
                           static_cast<double>(m.memory_bytes - means.least_available_bytes));
  add_network(means, out);
  put(out, "disk_read_bytes_per_second", means.disk_read.value(), 1);
  put(out, "disk_written_bytes_per_second", means.disk_written.value(), 1);
  put(out, "sampler_share", means.sampler.value(), 1e6);
  add_gpus(means, out);
  add_ranks(out);
  return out;
}

void HostMeans::add_cores(const MachineMeans& means, HostSummary& out) const {
  put(out, "cpu_share", means.cpu.value(), 1e4);
  out.line["cpu_cores"] = means.newest.cores;
  // Ranks with the same set of cores share it; other ranks have cores of their own.
  std::set<uint64_t> counted;
  double usable = 0;
  for (const auto& [rank, r] : ranks_) {
    if (hosts_[static_cast<std::size_t>(rank)] != out.host || r.samples == 0) continue;
    if (!counted.insert(r.newest.cores_id).second) continue;
    const double own = r.newest.usable_cores;
    usable += r.newest.core_limit > 0 ? std::min(own, r.newest.core_limit) : own;
  }
  if (usable > 0) {
    out.line["cpu_usable_cores"] =
        rounded_to(std::min(usable, static_cast<double>(means.newest.cores)), 100);
  }
  Json cores = Json::array();
  double idlest = 100, busiest = 0;
  for (const Mean& core : means.cores) {
    cores.push_back(std::lround(core.value()));
    idlest = std::min(idlest, core.value());
    busiest = std::max(busiest, core.value());
  }
  if (!cores.empty()) {
    put(out, "cpu_busiest_core_share", busiest / 100, 1e4);
    put(out, "cpu_idlest_core_share", idlest / 100, 1e4);
  }
  out.line["cpu_core_percent"] = std::move(cores);
  if (means.newest.cpu_watts < 0) return;
  put(out, "cpu_watts", means.cpu_watts.value(), 100);
  out.line["cpu_joules"] = rounded_to(means.newest.cpu_joules - means.first_joules, 100);
}

void HostMeans::add_network(const MachineMeans& means, HostSummary& out) {
  put(out, "tcp_segments_per_second", means.segments.value(), 10);
  put(out, "tcp_retransmits_per_second", means.retransmits.value(), 100);
  if (means.newest.interface[0] == '\0') return;
  out.line["interface"] = means.newest.interface;
  put(out, "in_bytes_per_second", means.in.value(), 1);
  put(out, "out_bytes_per_second", means.out.value(), 1);
  put(out, "in_packets_per_second", means.in_packets.value(), 10);
  put(out, "out_packets_per_second", means.out_packets.value(), 10);
  put(out, "drops_per_second", means.drops.value(), 100);
  put(out, "errors_per_second", means.errors.value(), 100);
  const double link = means.newest.link_bytes_per_second;
  if (link <= 0) return;
  out.line["link_bytes_per_second"] = link;
  put(out, "link_share", std::max(means.in.value(), means.out.value()) / link, 1e4);
}

void HostMeans::add_gpus(const MachineMeans& means, HostSummary& out) {
  if (means.gpus.empty()) return;
  Json all = Json::array();
  for (std::size_t i = 0; i < means.gpus.size(); ++i) {
    const GpuMeans& g = means.gpus[i];
    const GpuFigures& newest = means.newest.gpu[i];
    Json gpu = {{"name", newest.name}};
    auto put_mean = [&](const char* name, const Mean& mean, double digits) {
      if (!mean.is_known()) return;
      gpu[name] = rounded_to(mean.value(), digits);
      out.scalars.emplace_back("gpu" + std::to_string(i) + "/" + name, mean.value());
    };
    put_mean("use", g.use, 1e4);
    put_mean("memory_use", g.memory_use, 1e4);
    if (newest.memory_bytes > 0) {
      gpu["memory_bytes"] = newest.memory_bytes;
      gpu["memory_used_bytes"] = g.most_used_bytes;
      out.scalars.emplace_back("gpu" + std::to_string(i) + "/memory_used_bytes",
                               static_cast<double>(g.most_used_bytes));
    }
    put_mean("watts", g.watts, 100);
    if (newest.limit_watts > 0) gpu["limit_watts"] = rounded_to(newest.limit_watts, 100);
    if (g.watts.is_known()) gpu["joules"] = rounded_to(newest.joules - g.first_joules, 100);
    put_mean("temperature", g.temperature, 10);
    put_mean("sm_megahertz", g.sm_megahertz, 10);
    if (newest.most_sm_megahertz > 0) gpu["most_sm_megahertz"] = newest.most_sm_megahertz;
    put_mean("memory_megahertz", g.memory_megahertz, 10);
    put_mean("slowed_share", g.slowed, 1e4);
    put_mean("capped_share", g.capped, 1e4);
    all.push_back(std::move(gpu));
  }
  out.line["gpus"] = std::move(all);
}

void HostMeans::add_ranks(HostSummary& out) const {
  Json all = Json::array();
  for (const auto& [rank, r] : ranks_) {
    if (hosts_[static_cast<std::size_t>(rank)] != out.host || !r.cores.is_known()) continue;
    const std::string tag = "rank" + std::to_string(rank) + "/";
    Json line = {{"rank", rank}};
    auto put_figure = [&](const char* name, double value, double digits) {
      line[name] = rounded_to(value, digits);
      out.scalars.emplace_back(tag + name, value);
    };
    put_figure("cores", r.cores.value(), 1e3);
    line["memory_bytes"] = r.most_resident_bytes;
    out.scalars.emplace_back(tag + "memory_bytes", static_cast<double>(r.most_resident_bytes));
    put_figure("disk_read_bytes_per_second", r.read.value(), 1);
    put_figure("disk_written_bytes_per_second", r.written.value(), 1);
    all.push_back(std::move(line));
  }
  out.line["ranks"] = std::move(all);
}

}  // namespace lockstep
