// Answers question 4 over the whole run: cores, memory and GPUs of every host.
#include "report/answers/answers_hosts.h"
#include "report/draw/figure_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

// Shorter runs say little about the use of processors.
constexpr double kLongEnough = 60;  // seconds
constexpr double kIdle = 0.5, kComputing = 0.7, kTouched = 0.05, kTaken = 0.25;
constexpr double kSlowed = 0.05, kLittleMemory = 0.05;

Json json_of(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

std::string text_of(double value, const char* unit, int digits = 0) {
  return std::isfinite(value) ? fmt::format("{:.{}f}{}", value, digits, unit) : "-";
}

std::string share_text(double share) { return std::isfinite(share) ? percent(share) : "-"; }

// Returns a figure of GPU `i`; NaN in a row that does not have it.
HostSeries::Value of_gpu(std::size_t i, double GpuRow::*field) {
  return [i, field](const HostRow& row) { return i < row.gpus.size() ? row.gpus[i].*field : NAN; };
}

double used_share(const HostRow& row) { return 1 - row.memory_available_bytes / row.memory_bytes; }

// Cores kept busy by the ranks of the run; NaN in a row without a sample of any rank.
double rank_cores(const HostRow& row) {
  double out = row.ranks.empty() ? NAN : 0;
  for (const RankUseRow& rank : row.ranks) out += rank.cores;
  return out;
}

double share_of_usable(const HostRow& row) { return rank_cores(row) / row.usable_cores; }

// The share of all cores taken by programs outside the run.
double share_of_others(const HostRow& row) { return row.cpu_share - rank_cores(row) / row.cores; }

std::string gpu_name(const HostSeries& host, std::size_t i) {
  return fmt::format("{} gpu {}", host.name, i);
}

void add_host_table(const Run& run, Answer& out) {
  TextTable table{
      {"host", "busy cores of this run", "usable", "all programs", "idlest core", "busiest core",
       "memory used", "free at least", "disk read", "disk written", "CPU power"},
      {},
      "lrrrrrrrrrr"};
  for (const HostSeries& host : run.history.hosts.hosts) {
    const double cores = host.mean(rank_cores), share = host.mean(&HostRow::cpu_share);
    const double free = host.least(&HostRow::memory_available_bytes);
    const double usable = host.mean(&HostRow::usable_cores);
    const double used = host.most(used_share), watts = host.mean(&HostRow::cpu_watts);
    const double idlest = host.mean(&HostRow::idlest_core);
    const double busiest = host.mean(&HostRow::busiest_core);
    const double read = host.mean(&HostRow::disk_read_bytes);
    const double written = host.mean(&HostRow::disk_written_bytes);
    table.rows.push_back({host.name, text_of(cores, "", 1), text_of(usable, ""), share_text(share),
                          share_text(idlest), share_text(busiest), share_text(used),
                          short_bytes(free), short_bytes(read) + "/s", short_bytes(written) + "/s",
                          text_of(watts, " W")});
    out.facts["use_of_hosts"].push_back({{"host", host.name},
                                         {"sampled_seconds", host.seconds()},
                                         {"busy_cores", json_of(cores)},
                                         {"usable_cores", json_of(usable)},
                                         {"cpu_share", json_of(share)},
                                         {"idlest_core_share", json_of(idlest)},
                                         {"busiest_core_share", json_of(busiest)},
                                         {"memory_used_share", json_of(used)},
                                         {"memory_free_bytes", json_of(free)},
                                         {"disk_read_bytes_per_second", json_of(read)},
                                         {"disk_written_bytes_per_second", json_of(written)},
                                         {"cpu_watts", json_of(watts)}});
  }
  out.evidence.emplace_back(
      "Each host over the whole run, from a sample a second: means; of memory the most that was "
      "used.");
  out.tables.push_back(table);
}

void add_rank_table(const Run& run, Answer& out) {
  TextTable table{{"rank", "host", "busy cores", "memory at most"}, {}, "rlrr"};
  for (const HostSeries& host : run.history.hosts.hosts) {
    std::set<int> ranks;  // a single row may lack some
    for (const HostRow& row : host.rows) {
      for (const RankUseRow& r : row.ranks) ranks.insert(r.rank);
    }
    for (const int rank : ranks) {
      auto of_rank = [&](double RankUseRow::*field) {
        return [rank, field](const HostRow& row) {
          for (const RankUseRow& r : row.ranks) {
            if (r.rank == rank) return r.*field;
          }
          return static_cast<double>(NAN);
        };
      };
      const double cores = host.mean(of_rank(&RankUseRow::cores));
      const double memory = host.most(of_rank(&RankUseRow::memory_bytes));
      table.rows.push_back(
          {std::to_string(rank), host.name, text_of(cores, "", 2), short_bytes(memory)});
      out.facts["use_of_ranks"].push_back({{"rank", rank},
                                           {"host", host.name},
                                           {"busy_cores", json_of(cores)},
                                           {"memory_bytes", json_of(memory)}});
    }
  }
  if (!table.rows.empty()) out.tables.push_back(table);
}

void add_gpu_table(const Run& run, Answer& out) {
  TextTable table{{"GPU", "name", "use", "memory used", "power", "temperature", "hottest",
                   "SM clock", "slowed", "at its power limit"},
                  {},
                  "llrrrrrrrr"};
  for (const HostSeries& host : run.history.hosts.hosts) {
    for (std::size_t i = 0; i < host.gpus.size(); ++i) {
      const double use = host.mean(of_gpu(i, &GpuRow::use));
      const double memory = host.most(of_gpu(i, &GpuRow::memory_used_bytes));
      const double all = host.most(of_gpu(i, &GpuRow::memory_bytes));
      const double watts = host.mean(of_gpu(i, &GpuRow::watts));
      const double clock = host.mean(of_gpu(i, &GpuRow::sm_megahertz));
      const double slowed = host.mean(of_gpu(i, &GpuRow::slowed));
      const double capped = host.mean(of_gpu(i, &GpuRow::capped));
      const auto heat = of_gpu(i, &GpuRow::temperature);
      table.rows.push_back(
          {gpu_name(host, i), host.gpus[i], share_text(use),
           std::isfinite(all) ? fmt::format("{} of {}", short_bytes(memory), short_bytes(all))
                              : "-",
           text_of(watts, " W"), text_of(host.mean(heat), " C"), text_of(host.most(heat), " C"),
           fmt::format("{} of {}", text_of(clock, ""),
                       text_of(host.most(of_gpu(i, &GpuRow::most_sm_megahertz)), " MHz")),
           share_text(slowed), share_text(capped)});
      out.facts["use_of_gpus"].push_back({{"gpu", gpu_name(host, i)},
                                          {"use", json_of(use)},
                                          {"memory_used_bytes", json_of(memory)},
                                          {"watts", json_of(watts)},
                                          {"temperature", json_of(host.mean(heat))},
                                          {"sm_megahertz", json_of(clock)},
                                          {"slowed_share", json_of(slowed)},
                                          {"capped_share", json_of(capped)}});
    }
  }
  if (table.rows.empty()) return;
  out.evidence.emplace_back(
      "Each GPU over the whole run, as its driver tells: use is the share of time in which any "
      "kernel ran, of whatever program and however few cores it took.");
  out.tables.push_back(table);
}

using LinesOf = std::function<std::vector<HostLine>(const HostSeries&)>;

void add_figure(const Run& run, Figure figure, const PlotAxis& y, const LinesOf& lines_of,
                Answer& out) {
  std::vector<HostLine> lines;
  for (const HostSeries& host : run.history.hosts.hosts) {
    for (HostLine& line : lines_of(host)) lines.push_back(std::move(line));
  }
  if (lines.empty()) return;
  figure.panels.push_back(
      {.x = {.title = "minutes since the start"}, .y = y, .series = series_over_time(run, lines)});
  out.figures.push_back(std::move(figure));
}

LinesOf gpu_lines(double GpuRow::*field, double scale) {
  return [field, scale](const HostSeries& host) {
    std::vector<HostLine> out;
    for (std::size_t i = 0; i < host.gpus.size(); ++i) {
      auto value = of_gpu(i, field);
      if (!std::isfinite(host.mean(value))) continue;
      out.push_back({gpu_name(host, i), &host,
                     [value, scale](const HostRow& row) { return scale * value(row); }});
    }
    return out;
  };
}

std::vector<HostLine> memory_lines(const HostSeries& host) {
  std::vector<HostLine> out{
      {host.name, &host, [](const HostRow& row) { return 100 * used_share(row); }}};
  for (std::size_t i = 0; i < host.gpus.size(); ++i) {
    out.push_back({gpu_name(host, i), &host, [i](const HostRow& row) {
                     if (i >= row.gpus.size()) return static_cast<double>(NAN);
                     return 100 * row.gpus[i].memory_used_bytes / row.gpus[i].memory_bytes;
                   }});
  }
  return out;
}

void add_figures(const Run& run, Answer& out) {
  auto cpu = [](const HostSeries& host) {
    auto value = [](const HostRow& row) { return 100 * row.cpu_share; };
    return std::vector<HostLine>{{host.name, &host, value}};
  };
  add_figure(run,
             {.name = "cpu-use",
              .title = "Use of the cores",
              .caption = "Of all cores of a host, by all programs.",
              .panels = {}},
             {.title = "busy (%)", .from = 0.0, .to = 100.0}, cpu, out);
  add_figure(run,
             {.name = "memory-use",
              .title = "Memory in use",
              .caption = "Of what a host or GPU has; what is above the line is headroom.",
              .panels = {}},
             {.title = "used (%)", .from = 0.0, .to = 100.0}, memory_lines, out);
  add_figure(run,
             {.name = "gpu-use",
              .title = "Use of the GPUs",
              .caption = "Share of time in which a kernel ran.",
              .panels = {}},
             {.title = "busy (%)", .from = 0.0, .to = 100.0}, gpu_lines(&GpuRow::use, 100), out);
  add_figure(run,
             {.name = "gpu-power",
              .title = "Power of the GPUs",
              .caption = "As their drivers tell.",
              .panels = {}},
             {.title = "power (W)", .from = 0.0}, gpu_lines(&GpuRow::watts, 1), out);
  add_figure(
      run,
      {.name = "gpu-temperature", .title = "Temperature of the GPUs", .caption = "", .panels = {}},
      {.title = "temperature (C)"}, gpu_lines(&GpuRow::temperature, 1), out);
  add_figure(run,
             {.name = "gpu-clock", .title = "SM clock", .caption = "Of the GPUs.", .panels = {}},
             {.title = "clock (MHz)", .from = 0.0}, gpu_lines(&GpuRow::sm_megahertz, 1), out);
}

// Returns whether the run, or another program, uses a GPU of this host.
bool find_idle_gpus(const HostSeries& host, double computing, Answer& out, Findings& findings) {
  bool touched = false;
  std::vector<std::string> unused;
  for (std::size_t i = 0; i < host.gpus.size(); ++i) {
    const double use = host.mean(of_gpu(i, &GpuRow::use));
    const double slowed = host.mean(of_gpu(i, &GpuRow::slowed));
    if (slowed > kSlowed) {
      findings.push_back(
          {"gpu_throttled",
           fmt::format("heat or the power supply held the clocks of {} down for {} of the time",
                       gpu_name(host, i), percent(slowed))});
    }
    if (!std::isfinite(use)) continue;
    if (use < kTouched) {
      unused.push_back(std::to_string(i));
      continue;
    }
    touched = true;
    if (use < kIdle && computing > kComputing && host.seconds() >= kLongEnough) {
      findings.push_back({"gpu_idle", fmt::format("{} ran kernels for only {} of the time",
                                                  gpu_name(host, i), percent(use))});
    }
  }
  if (!unused.empty()) {
    out.evidence.push_back(
        fmt::format("{}: GPU {} hardly computed.", host.name, join(unused, ", ")));
  }
  return touched;
}

}  // namespace

void add_processor_use(const Run& run, double computing, Answer& out, Findings& findings) {
  const HostHistory& history = run.history.hosts;
  if (history.empty()) {
    out.not_measured.push_back(
        {"use of cores and GPUs over time, memory, power, clocks",
         "the run has no lines of its hosts; the rest is known of its newest 20 seconds",
         "monitor.every_seconds above 0, and longer than a few seconds"});
    return;
  }
  add_host_table(run, out);
  add_rank_table(run, out);
  add_gpu_table(run, out);
  add_figures(run, out);
  for (const HostSeries& host : history.hosts) {
    const bool gpus = find_idle_gpus(host, computing, out, findings);
    const double used = host.mean(share_of_usable);
    const bool free_cores = host.mean(&HostRow::cpu_share) < kIdle;  // nor taken by other programs
    if (!gpus && used < kIdle && free_cores && computing > kComputing &&
        host.seconds() >= kLongEnough) {
      findings.push_back(
          {"cores_idle", fmt::format("the ranks on {} kept {} of its {:.0f} usable cores busy, "
                                     "though they seldom waited",
                                     host.name, percent(used), host.mean(&HostRow::usable_cores))});
    }
    const double taken = host.mean(share_of_others);
    if (taken > kTaken && host.seconds() >= kLongEnough) {
      findings.push_back({"cores_taken", fmt::format("other programs took {} of the cores of {}",
                                                     percent(taken), host.name)});
    }
    const double free = 1 - host.most(used_share);
    if (free < kLittleMemory) {
      findings.push_back({"memory_nearly_full", fmt::format("only {} of the memory of {} was free",
                                                            percent(free), host.name)});
    }
  }
  double sampler = 0;
  for (const HostSeries& host : history.hosts) {
    sampler = std::fmax(sampler, host.mean(&HostRow::sampler_share));
  }
  out.facts["sampler_share_of_a_core"] = sampler;
  out.evidence.push_back(
      fmt::format("Taking these figures took {:.2f} % of one core.", 100 * sampler));
}

}  // namespace lockstep
