// Writes a doctor's report as text and as JSON.
#include <algorithm>

#include "base/text.h"
#include "launch/doctor/doctor.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

std::string cell(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : text + std::string(width - text.size(), ' ');
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += cell(row[i], widths[i]) + "  ";
    line.resize(line.find_last_not_of(' ') + 1);
    out += "  " + line + "\n";
  }
  return out;
}

std::string hosts_table(const DoctorReport& report) {
  std::vector<std::vector<std::string>> rows = {{"host", "address", "ranks", "cores", "GPUs",
                                                 "memory", "free", "fp32", "bf16", "copy",
                                                 "clock"}};
  for (const HostReport& h : report.hosts) {
    if (h.failure) {
      rows.push_back({h.name, "no answer"});
      continue;
    }
    auto flops = [&](const char* what) {
      return fmt::format("{:.0f} Gflop/s", h.speed.value(what, 0.0) * 1e-9);
    };
    const std::string where =
        h.interface.empty() ? h.address : fmt::format("{} ({})", h.address, h.interface);
    rows.push_back(
        {h.name, where.empty() ? "-" : where, std::to_string(h.ranks),
         std::to_string(h.facts.value("cores", 0)), std::to_string(h.facts.at("gpus").size()),
         short_bytes(h.facts.value("memory_bytes", 0.0)),
         short_bytes(h.facts.value("free_memory_bytes", 0.0)), flops("fp32_flops"),
         flops("bf16_flops"), short_bytes(h.speed.value("copied_bytes_per_second", 0.0)) + "/s",
         fmt::format("{:+.1f} ms", h.clock_ahead_seconds * 1e3)});
  }
  return "Hosts\n" + table(rows);
}

// Rows are `from`, columns `to`.
template <class F>
std::string matrix(const DoctorReport& report, const std::string& title, const F& text) {
  std::vector<std::vector<std::string>> rows(report.hosts.size() + 1);
  rows[0].push_back("");
  for (std::size_t i = 0; i < report.hosts.size(); ++i) {
    rows[0].push_back(report.hosts[i].name);
    rows[i + 1].push_back(report.hosts[i].name);
    rows[i + 1].resize(report.hosts.size() + 1, "-");
  }
  for (const LinkReport& link : report.links) {
    rows[link.from + 1][link.to + 1] = text(link, true);
    rows[link.to + 1][link.from + 1] = text(link, false);
  }
  return title + "\n" + table(rows);
}

std::string links_text(const DoctorReport& report) {
  if (report.links.empty()) return "";
  std::string out =
      matrix(report, "Bandwidth from (row) to (column): several connections, one",
             [](const LinkReport& l, bool forth) {
               if (!l.failure.empty()) return std::string("fails");
               return fmt::format("{:.3g}, {:.3g} Gbit/s", (forth ? l.to_many : l.from_many) * 8e-9,
                                  (forth ? l.to_one : l.from_one) * 8e-9);
             });
  out += matrix(report, "Round trip", [](const LinkReport& l, bool) {
    return l.failure.empty() ? fmt::format("{:.3f} ms", l.round_trip_seconds * 1e3)
                             : std::string("fails");
  });
  return out;
}

std::string findings_text(const DoctorReport& report) {
  std::string out = "Findings\n";
  std::vector<DoctorFinding> sorted = report.findings;
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const DoctorFinding& a, const DoctorFinding& b) { return a.verdict > b.verdict; });
  for (const DoctorFinding& f : sorted) {
    out += fmt::format("  {:<5} {:<10} {}{}\n", name_of(f.verdict), f.check,
                       f.host.empty() ? "" : f.host + ": ", f.seen);
    if (!f.expected.empty()) out += fmt::format("  {:<16} expected: {}\n", "", f.expected);
    if (!f.advice.empty()) out += fmt::format("  {:<16} try: {}\n", "", f.advice);
  }
  return out;
}

Json host_json(const HostReport& h) {
  Json out = {{"name", h.name}, {"ranks", h.ranks}, {"answers", !h.failure}};
  if (h.failure) {
    out["failure"] = h.failure->describe();
    return out;
  }
  out.update({{"address", h.address},
              {"interface", h.interface},
              {"address_from", h.why},
              {"clock_ahead_seconds", h.clock_ahead_seconds},
              {"clock_error_seconds", h.clock_error_seconds}});
  out["facts"] = h.facts;
  out["speed"] = h.speed;
  return out;
}

}  // namespace

std::string doctor_text(const DoctorReport& report) {
  const Judgement worst = report.worst();
  std::string out = hosts_table(report) + links_text(report) + findings_text(report);
  int warnings = 0, failures = 0;
  for (const DoctorFinding& f : report.findings) {
    warnings += f.verdict == Judgement::kWarn;
    failures += f.verdict == Judgement::kFail;
  }
  out += fmt::format("Verdict: {} ({} failure{}, {} warning{}), {:.1f} s\n",
                     worst == Judgement::kFail   ? "a run would fail"
                     : worst == Judgement::kWarn ? "a run would work; see the warnings"
                                                 : "ready",
                     failures, failures == 1 ? "" : "s", warnings, warnings == 1 ? "" : "s",
                     report.seconds);
  return out;
}

Json to_json(const DoctorReport& report) {
  Json out = {{"format", 1},
              {"lockstep", LOCKSTEP_VERSION},
              {"verdict", name_of(report.worst())},
              {"seconds", report.seconds}};
  out["hosts"] = Json::array();
  for (const HostReport& h : report.hosts) out["hosts"].push_back(host_json(h));
  out["links"] = Json::array();
  for (const LinkReport& l : report.links) {
    out["links"].push_back({{"from", report.hosts[l.from].name},
                            {"to", report.hosts[l.to].name},
                            {"failure", l.failure},
                            {"back_failure", l.back_failure},
                            {"round_trip_seconds", l.round_trip_seconds},
                            {"to_one_stream", l.to_one},
                            {"to_streams", l.to_many},
                            {"from_one_stream", l.from_one},
                            {"from_streams", l.from_many}});
  }
  const ExchangeReport& e = report.exchange;
  out["all_reduce"] = {{"bytes", e.bytes},
                       {"seconds", e.seconds},
                       {"gradient_seconds", e.gradient_seconds},
                       {"failure", e.failure}};
  out["findings"] = Json::array();
  for (const DoctorFinding& f : report.findings) {
    out["findings"].push_back({{"verdict", name_of(f.verdict)},
                               {"check", f.check},
                               {"host", f.host},
                               {"seen", f.seen},
                               {"expected", f.expected},
                               {"advice", f.advice}});
  }
  return out;
}

}  // namespace lockstep
