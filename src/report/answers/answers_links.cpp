// Answers question 5 over the whole run (interfaces against their links), and adds the measured
// energy.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/answers/answers_hosts.h"
#include "report/answers/known_link.h"
#include "report/draw/figure_text.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kFull = 0.8, kOften = 0.1;        // shares: of the link; of the time
constexpr double kDropped = 1e-4, kFewDrops = 10;  // a share of packets; a number of packets
constexpr double kRetransmits = 10;                // per second

double busier_way(const HostRow& row) { return std::fmax(row.in_bytes, row.out_bytes); }
double lost_packets(const HostRow& row) { return row.drops + row.errors; }

std::string rate(double bytes) { return std::isfinite(bytes) ? short_bytes(bytes) + "/s" : "-"; }

bool has(const Findings& findings, const std::string& id) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& finding) { return finding.id == id; });
}

void find_trouble(const HostSeries& host, double link, Findings& findings) {
  const double often = link > 0 ? host.share_above(busier_way, kFull * link) : 0;
  if (often >= kOften) {
    findings.push_back(
        {"link_full", fmt::format("{} used more than {} of its link's {} for {} of the time",
                                  host.name, percent(kFull), rate(link), percent(often))});
  }
  const double lost = host.sum([](const HostRow& r) { return lost_packets(r) * r.seconds; });
  const double packets = host.sum([](const HostRow& r) { return r.packets * r.seconds; });
  if (lost >= kFewDrops && lost > kDropped * packets) {
    findings.push_back(
        {"drops", fmt::format("{} of {} lost {:.0f} of {} packets (drops and errors "
                              "of the interface)",
                              host.interface, host.name, lost, short_number(packets))});
  }
  const double again = host.mean(&HostRow::retransmits);
  if (again > kRetransmits && !has(findings, "retransmits")) {
    findings.push_back({"retransmits", fmt::format("{} sends {:.0f} TCP segments again a second",
                                                   host.name, again)});
  }
}

void add_link_figure(const Run& run, double link, Answer& out) {
  std::vector<HostLine> lines;
  for (const HostSeries& host : run.history.hosts.hosts) {
    if (host.interface.empty()) continue;
    lines.push_back({host.name + " in", &host, [](const HostRow& r) { return r.in_bytes * 1e-6; }});
    lines.push_back(
        {host.name + " out", &host, [](const HostRow& r) { return r.out_bytes * 1e-6; }});
  }
  if (lines.empty()) return;
  PlotPanel panel{.x = {.title = "minutes since the start"},
                  .y = {.title = "traffic (MB/s)", .from = 0.0},
                  .series = series_over_time(run, lines)};
  if (link > 0) {
    PlotSeries limit{.name = "the link's speed", .points = {}, .reference = true};
    double first = 0, last = 0;
    for (const PlotSeries& series : panel.series) {
      for (const PlotPoint& p : series.points) last = std::max(last, p.x);
    }
    for (double x : {first, last}) limit.points.push_back({x, link * 1e-6});
    panel.series.push_back(limit);
  }
  out.figures.push_back({.name = "link-use",
                         .title = "Traffic of the interfaces",
                         .caption = "All programs of the machines, each way.",
                         .panels = {std::move(panel)}});
}

struct HostEnergy {
  double gpus = 0, processors = 0;  // joules
  bool has_gpus = false, has_processors = false;
};

HostEnergy energy_of(const HostSeries& host) {
  HostEnergy out;
  for (const HostRow& row : host.rows) {
    if (std::isfinite(row.cpu_joules)) {
      out.processors += row.cpu_joules;
      out.has_processors = true;
    }
    for (const GpuRow& gpu : row.gpus) {
      if (!std::isfinite(gpu.joules)) continue;
      out.gpus += gpu.joules;
      out.has_gpus = true;
    }
  }
  return out;
}

std::string kwh(double joules) { return fmt::format("{:.3g} kWh", joules / 3.6e6); }

}  // namespace

void add_link_use(const Run& run, const ReportOptions& options, Answer& out, Findings& findings) {
  if (run.history.hosts.empty()) {
    out.not_measured.push_back({"bytes through each network interface over the whole run",
                                "the run has no lines of its hosts",
                                "monitor.every_seconds above 0"});
    return;
  }
  TextTable table{{"host", "interface", "in", "out", "busiest", "link", "used", "busiest used",
                   "lost packets", "retransmits"},
                  {},
                  "llrrrrrrrr"};
  double slowest = 0;
  for (const HostSeries& host : run.history.hosts.hosts) {
    if (host.interface.empty()) continue;
    const double in = host.mean(&HostRow::in_bytes), sent = host.mean(&HostRow::out_bytes);
    const double busiest = host.most(busier_way);
    const KnownLink known = known_link(run, options, host.most(&HostRow::link_bytes));
    const double link = known.bytes_per_second;
    const double lost = host.mean(lost_packets), again = host.mean(&HostRow::retransmits);
    if (link > 0) slowest = slowest > 0 ? std::min(slowest, link) : link;
    table.rows.push_back({host.name, host.interface, rate(in), rate(sent), rate(busiest),
                          link > 0 ? rate(link) : "not known",
                          link > 0 ? percent(std::max(in, sent) / link) : "-",
                          link > 0 ? percent(busiest / link) : "-", fmt::format("{:.2g}/s", lost),
                          fmt::format("{:.2g}/s", again)});
    Json facts = {{"host", host.name},
                  {"interface", host.interface},
                  {"in_bytes_per_second", in},
                  {"out_bytes_per_second", sent},
                  {"busiest_bytes_per_second", busiest},
                  {"link_bytes_per_second", link > 0 ? Json(link) : Json(nullptr)},
                  {"link_source", known.known() ? Json(known.source) : Json(nullptr)},
                  {"lost_packets_per_second", lost},
                  {"retransmits_per_second", again}};
    out.facts["use_of_links"].push_back(std::move(facts));
    find_trouble(host, link, findings);
  }
  if (table.rows.empty()) return;
  out.evidence.emplace_back(
      "Each interface over the whole run, all programs of the machine: means, and the busiest "
      "seconds that one line tells of.");
  out.tables.push_back(table);
  add_link_figure(run, slowest, out);
}

bool add_measured_energy(const Run& run, Answer& out) {
  const std::vector<HostSeries>& hosts = run.history.hosts.hosts;
  double gpus = 0, processors = 0, seconds = 0;
  std::vector<std::string> without;
  std::size_t with_gpus = 0, with_processors = 0;
  TextTable table{{"host", "GPUs", "processors", "sampled for"}, {}, "lrrr"};
  for (const HostSeries& host : hosts) {
    const HostEnergy energy = energy_of(host);
    gpus += energy.gpus;
    processors += energy.processors;
    seconds += host.seconds();
    with_gpus += energy.has_gpus ? 1 : 0;
    with_processors += energy.has_processors ? 1 : 0;
    if (!energy.has_processors) without.push_back(host.name);
    table.rows.push_back({host.name, energy.has_gpus ? kwh(energy.gpus) : "not measured",
                          energy.has_processors ? kwh(energy.processors) : "not measured",
                          short_duration(host.seconds())});
  }
  if (with_gpus == 0 && with_processors == 0) return false;
  out.facts["energy_kwh"] = (gpus + processors) / 3.6e6;
  out.facts["energy_gpus_kwh"] = with_gpus > 0 ? Json(gpus / 3.6e6) : Json(nullptr);
  out.facts["energy_processors_kwh"] =
      with_processors > 0 ? Json(processors / 3.6e6) : Json(nullptr);
  out.facts["energy_source"] = "measured";
  out.facts["energy_sampled_seconds"] = seconds;
  out.verdict +=
      fmt::format(" Measured: {} ({}), by the counters of {}.", kwh(gpus + processors),
                  fmt::format("{:.0f} W on average", (gpus + processors) / std::max(seconds, 1e-9) *
                                                         static_cast<double>(hosts.size())),
                  with_processors == 0 ? "the GPUs alone"
                  : with_gpus == 0     ? "the processor packages alone"
                                       : "GPUs and processor packages");
  out.evidence.emplace_back(
      "Not in the measured energy: memory, disks, network cards, fans and what the power supplies "
      "lose. All programs of the machines are in it.");
  out.tables.push_back(table);
  if (!without.empty()) {
    out.not_measured.push_back(
        {fmt::format("energy of the processors of {}", join(without, ", ")),
         "there is no counter (RAPL), or only root may read it",
         "chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj there, or a meter and --watts"});
  }
  return true;
}

}  // namespace lockstep
