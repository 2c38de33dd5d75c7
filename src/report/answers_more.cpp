// Beyond the eleven questions: failures, cost and energy, samples, comparison, how to repeat it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/text.h"
#include "report/answers.h"
#include "report/answers_hosts.h"
#include "report/comparison.h"
#include "report/comparison_plots.h"
#include "report/read_json.h"

namespace lockstep {

namespace {

std::string utc(double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&whole, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

}  // namespace

Answer answer_failures(const Run& run, Findings& findings) {
  Answer out{.id = "failures", .question = "Failures and restarts"};
  const RunHistory& h = run.history;
  out.facts["attempts"] = h.attempts.size();
  out.facts["repeated_steps"] = h.repeated_steps;
  out.facts["repeated_seconds"] = h.repeated_seconds;
  if (h.attempts.size() > 1) {
    double away = 0;
    ComparisonTable table{
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
  ComparisonTable events{{"time (UTC)", "launcher", "what"}, {}, "lll"};
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
  if (const auto& warnings = run.facts.warnings; !warnings.empty()) {
    out.evidence.push_back(fmt::format("Rank 0's log has {} warning{}; the newest: {}",
                                       warnings.size(), warnings.size() == 1 ? "" : "s",
                                       warnings.back()));
  }
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

Answer answer_samples(const Run& run) {
  Answer out{.id = "samples", .question = "Samples"};
  if (run.facts.samples.empty()) {
    out.verdict = "None were logged.";
    out.not_measured.push_back(
        {"samples", "no evaluation logged any", "evaluation.samples, with evaluation.every"});
    return out;
  }
  out.verdict = fmt::format("Of the evaluation at step {}.", with_commas(run.facts.samples_step));
  ComparisonTable table{{"source", "reference", "output"}, {}, "lll"};
  for (const RunSample& s : run.facts.samples)
    table.rows.push_back({s.source, s.reference, s.output});
  out.tables.push_back(table);
  return out;
}

Answer answer_comparison(const std::vector<fs::path>& folders) {
  Answer out{.id = "comparison", .question = "Beside other runs"};
  if (folders.size() < 2) {
    out.verdict = "No other run was given.";
    out.not_measured.push_back(
        {"comparison", "one run was given", "lockstep report RUN EARLIER..., or lockstep compare"});
    return out;
  }
  const Comparison comparison = compare_runs(read_compared(folders));
  out.verdict =
      fmt::format("{} runs; the first is the one of this report.", comparison.runs.size());
  out.tables.push_back(comparison_table(comparison));
  out.evidence = comparison.notes;
  out.facts = comparison_json(comparison);
  out.figures = comparison_figures(comparison);
  for (Figure& figure : out.figures) figure.name = "compare-" + figure.name;
  return out;
}

Answer answer_repeat(const Run& run) {
  Answer out{.id = "repeat", .question = "How to repeat it"};
  const RunFacts& f = run.facts;
  out.verdict =
      "The run folder's config.toml is the whole configuration, every key with its value.";
  const int ranks = f.ranks(), hosts = f.hosts();
  std::string train = "lockstep train RUN/config.toml run.folder=runs/again";
  if (ranks > 1) {
    std::string places = fmt::format("-n {}", ranks);
    for (int i = 1; hosts > 1 && i <= hosts; ++i) {
      places = fmt::format("{}HOST{}:{}", i == 1 ? "-H " : places + ",", i, ranks / hosts);
    }
    train =
        fmt::format("lockstep launch {} -- train RUN/config.toml run.folder=runs/again", places);
  }
  out.code.push_back(train);
  ComparisonTable table{{"version of", "is"}, {}, "ll"};
  for (const auto& [name, value] : f.versions) {
    table.rows.push_back({name, value});
    out.facts["versions"][name] = value;
  }
  if (!table.rows.empty()) out.tables.push_back(table);
  out.facts["command"] = train;
  if (!f.configs.empty()) {
    out.evidence.push_back(
        fmt::format("The configuration was changed by --resume: {} {} what was in "
                    "force before.",
                    join(f.configs, ", "), f.configs.size() == 1 ? "is" : "are"));
  }
  if (f.data.manifest.is_object()) {
    const ReadJson& m = f.data.manifest;
    if (m.contains("inputs") && m["inputs"].is_array()) {
      ComparisonTable inputs{{"input", "bytes", "SHA-256"}, {}, "lrl"};
      for (const ReadJson& file : m["inputs"]) {
        inputs.rows.push_back({file.value("name", ""), with_commas(file.value("bytes", int64_t{0})),
                               file.value("sha256", "")});
      }
      if (!inputs.rows.empty()) out.tables.push_back(inputs);
    }
  }
  out.evidence.push_back(
      "With the same data, ranks and threads the weights come out equal bit for bit; with others "
      "up to "
      "rounding.");
  return out;
}

}  // namespace lockstep
