#include "report/answers/known_link.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "report/run/read_json.h"

namespace lockstep {

namespace {

// The network of the plan in the run folder.
KnownLink planned_link(const Run& run) {
  if (!run.facts.plan.is_object()) return {};
  const ReadJson network = run.facts.plan.value("network", ReadJson::object());
  const double speed = number(network, "bytes_per_second");
  if (speed <= 0) return {};
  if (word(network, "source") == "as given") return {speed, "as it was given to lockstep plan"};
  return {speed, network.value("at_least", false) ? "at least, as lockstep plan measured it"
                                                  : "as lockstep plan measured it"};
}

}  // namespace

KnownLink known_link(const Run& run, const ReportOptions& options, double told) {
  if (options.link_bytes_per_second > 0) {
    return {options.link_bytes_per_second, "as given (--bandwidth)"};
  }
  if (options.measured_link > 0) return {options.measured_link, "as lockstep doctor measured it"};
  if (told > 0) return {told, "as the interfaces say"};
  return planned_link(run);
}

KnownLink known_link(const Run& run, const ReportOptions& options) {
  double slowest = 0;
  for (const RankLive& r : ranks_of(run.facts)) {
    if (r.link_bytes > 0 && (slowest == 0 || r.link_bytes < slowest)) slowest = r.link_bytes;
  }
  return known_link(run, options, slowest);
}

void add_known_link(const KnownLink& link, Answer& out) {
  if (link.known()) {
    out.facts["link_bytes_per_second"] = link.bytes_per_second;
    out.facts["link_source"] = link.source;
    return;
  }
  out.facts["link_bytes_per_second"] = nullptr;
  out.facts["link_source"] = nullptr;
  out.not_measured.push_back(
      {"link speed not known",
       "the hosts' interfaces do not say it (those of virtual machines and containers cannot), and "
       "the run folder has no plan.json of lockstep plan",
       "lockstep doctor -H ... --json > doctor.json, then lockstep report --doctor doctor.json; or "
       "what the cloud promises: --bandwidth 5gbit"});
}

double doctor_link_speed(const fs::path& file) {
  const ReadJson doctor = ReadJson::parse(read_file(file), nullptr, false);
  if (!doctor.is_object() || !doctor.contains("links") || !doctor["links"].is_array()) {
    throw DataError("{}: is not what `lockstep doctor --json` prints", file.string());
  }
  double slowest = 0;
  for (const ReadJson& link : doctor["links"]) {
    for (const char* way : {"to_streams", "from_streams"}) {
      const double speed = number(link, way);
      if (speed > 0 && (slowest == 0 || speed < slowest)) slowest = speed;
    }
  }
  if (slowest <= 0) {
    throw DataError("{}: no link was measured (two hosts that answer are needed)", file.string());
  }
  return slowest;
}

}  // namespace lockstep
