// Answers beyond the eleven questions: failures and restarts, cost and energy.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/date.h"
#include "base/text.h"
#include "report/answers/answers.h"
#include "report/answers/answers_hosts.h"
#include "report/run/read_json.h"

namespace lockstep {

namespace {

std::string utc(double seconds) {
  return utc_date(static_cast<std::time_t>(seconds), "%Y-%m-%d %H:%M:%S");
}

// What the guard did: docs/training.md#guards.
void add_interventions(const RunHistory& history, Answer& out, Findings& findings) {
  if (history.interventions.empty()) return;
  static const std::map<std::string, std::string> kDone = {
      {"skip", "its batch was passed over"},
      {"roll_back", "the run went back to the newest checkpoint"},
      {"mend", "it got the bits of the others"}};
  TextTable table{{"step", "what was wrong", "what was done"}, {}, "rll"};
  int64_t unequal = 0;
  for (const InterventionRow& row : history.interventions) {
    const auto done = kDone.find(row.action);
    table.rows.push_back(
        {with_commas(row.step), row.why, done == kDone.end() ? row.action : done->second});
    if (row.kind == "unequal_ranks") ++unequal;
  }
  out.tables.push_back(table);
  out.facts["interventions"] = history.interventions.size();
  findings.push_back(
      {"guard",
       fmt::format("The guard stepped in {} time{}; the last time at step {}: {}.",
                   history.interventions.size(), history.interventions.size() == 1 ? "" : "s",
                   with_commas(history.interventions.back().step),
                   history.interventions.back().why)});
  if (unequal > 0) {
    findings.push_back({"unequal_ranks",
                        "The memory or the arithmetic of a machine changed bits: "
                        "test it before the next run."});
  }
}

// Adds the attempts, what lay between them and what was done again.
void add_attempts(const Run& run, Answer& out, Findings& findings) {
  const RunHistory& h = run.history;
  if (h.attempts.size() > 1) {
    double away = 0;
    TextTable table{
        {"attempt", "began (UTC)", "first step", "last step", "lasted", "ended"}, {}, "rlrrrl"};
    for (std::size_t i = 0; i < h.attempts.size(); ++i) {
      const AttemptRow& a = h.attempts[i];
      if (i > 0) away += std::max(0.0, a.began - h.attempts[i - 1].ended);
      const bool newest = i + 1 == h.attempts.size();
      table.rows.push_back({std::to_string(i + 1), utc(a.began), with_commas(a.first_step),
                            with_commas(a.last_step), short_duration(a.ended - a.began),
                            !a.end.empty()                  ? a.end
                            : newest && !run.facts.failed() ? "no end yet"
                                                            : "broke off"});
    }
    out.tables.push_back(table);
    out.verdict = fmt::format(
        "It was interrupted {} time{}; {} steps ({}) were done again, and {} lay "
        "between attempts.",
        h.attempts.size() - 1, h.attempts.size() == 2 ? "" : "s", with_commas(h.repeated_steps),
        short_duration(h.repeated_seconds), short_duration(away));
    findings.push_back({"interrupted", out.verdict});
  } else {
    out.verdict = h.attempts.empty() ? "It did not begin." : "None: one attempt.";
  }
}

}  // namespace

Answer answer_failures(const Run& run, Findings& findings) {
  Answer out{.id = "failures", .question = "Failures and restarts"};
  const RunHistory& h = run.history;
  out.facts["attempts"] = h.attempts.size();
  out.facts["repeated_steps"] = h.repeated_steps;
  out.facts["repeated_seconds"] = h.repeated_seconds;
  add_attempts(run, out, findings);
  TextTable events{{"time (UTC)", "launcher", "what"}, {}, "lll"};
  for (const ReadJson& line : run.facts.launch) {
    const std::string event = line.value("event", "");
    std::string what = line.value("text", "");
    if (line.contains("seconds") && event == "first_step") {
      what += fmt::format(" {:.1f} s after the launch, failure or stop before",
                          line["seconds"].get<double>());
    }
    if (event == "failure" || event == "host_lost" || event == "reclaimed") {
      findings.push_back({event, what});
    }
    events.rows.push_back({utc(line.value("time", 0.0)), event, what});
  }
  if (!events.rows.empty()) out.tables.push_back(events);
  for (const auto& [rank, text] : run.facts.errors) {
    out.evidence.push_back(fmt::format("{} left an error:", rank));
    out.code.push_back(text);
  }
  double skipped = 0;
  for (const StepRow& row : h.steps) skipped = std::max(skipped, row.skipped);
  if (skipped > 0) {
    out.evidence.push_back(
        fmt::format("{:.0f} updates were left out as fp16 gradients overflowed.", skipped));
    out.facts["skipped_steps"] = skipped;
  }
  add_interventions(h, out, findings);
  if (const auto& warnings = run.facts.warnings; !warnings.empty()) {
    out.evidence.push_back(fmt::format("Rank 0's log has {} warning{}; the newest: {}",
                                       warnings.size(), warnings.size() == 1 ? "" : "s",
                                       warnings.back()));
  }
  return out;
}

struct LaunchCost {
  double cost = 0, per_hour = 0;
};

// What the launches of the run counted, with their prices.
LaunchCost cost_of_launches(const Run& run) {
  LaunchCost out;
  std::map<std::string, double> launches;
  for (const ReadJson& event : run.facts.launch) {
    if (!event.contains("cost")) continue;
    double& cost = launches[event.value("run_id", "")];
    cost = std::max(cost, event.value("cost", 0.0));
    out.per_hour = event.value("per_hour", out.per_hour);
  }
  for (const auto& [id, cost] : launches) out.cost += cost;
  return out;
}

Answer answer_cost(const Run& run, const ReportOptions& options) {
  Answer out{.id = "cost", .question = "Cost and energy"};
  const int hosts = run.facts.hosts();
  const double wall = run.history.wall_seconds(), hours = wall / 3600 * hosts;
  out.facts["host_hours"] = hours;
  out.verdict = fmt::format("{} host{} for {}: {:.2f} host hours.", hosts, hosts == 1 ? "" : "s",
                            short_duration(wall), hours);
  if (options.price_per_hour > 0) {
    const double cost = hours * options.price_per_hour;
    out.facts["cost"] = cost;
    out.verdict += fmt::format(" At {:g} a host and hour: {:.2f}.", options.price_per_hour, cost);
  } else if (const LaunchCost launches = cost_of_launches(run); launches.per_hour > 0) {
    out.facts["cost"] = launches.cost;
    out.verdict += fmt::format(" Its launches spent {:.2f}, at {:g} an hour for all hosts.",
                               launches.cost, launches.per_hour);
  } else {
    out.facts["cost"] = nullptr;
    out.not_measured.push_back({"cost", "no price was given", "lockstep report --price 0.526/h"});
  }
  const bool measured = add_measured_energy(run, out);
  if (options.watts > 0) {
    const double kwh = hours * options.watts / 1000;
    out.facts[measured ? "energy_given_kwh" : "energy_kwh"] = kwh;
    if (!measured) out.facts["energy_source"] = "given";
    out.verdict += fmt::format(" At {:g} W a host, as given and not measured: {:.3g} kWh.",
                               options.watts, kwh);
  } else if (!measured) {
    out.facts["energy_kwh"] = nullptr;
    out.not_measured.push_back(
        {"energy", "no host of the run has power readings: GPUs, or processors' counters (RAPL)",
         "lockstep report --watts N, read from a meter"});
  }
  out.evidence.emplace_back(
      "From the first line of the run to its newest; setting machines up and "
      "idling afterwards cost as well and are not in it.");
  return out;
}

}  // namespace lockstep
