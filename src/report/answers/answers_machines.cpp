// Answers questions 4 and 5: were the processors used, was the network the bottleneck.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/statistics.h"
#include "base/text.h"
#include "report/answers/analysis_flops.h"
#include "report/answers/analysis_traffic.h"
#include "report/answers/answers.h"
#include "report/answers/answers_hosts.h"
#include "report/answers/answers_phases.h"
#include "report/answers/host_clock.h"
#include "report/answers/known_link.h"
#include "report/draw/figure_text.h"
#include "report/run/analysis_steps.h"
#include "report/run/read_json.h"

namespace lockstep {

namespace {

TextTable rank_table(const std::vector<RankLive>& ranks) {
  TextTable table{
      {"rank", "host", "step", "compute", "wait", "data", "cores busy", "machine busy", "memory"},
      {},
      "rlrrrrrrr"};
  for (const RankLive& r : ranks) {
    table.rows.push_back({std::to_string(r.rank), r.host, milliseconds(r.step),
                          milliseconds(r.compute), milliseconds(r.wait), milliseconds(r.data),
                          fmt::format("{:.1f} of {:.0f}", r.cores, r.machine_cores),
                          percent(r.machine_share), short_bytes(r.memory_bytes)});
  }
  return table;
}

std::string slow_text(const SlowRankRow& row) {
  return fmt::format("rank {} on {} was {:.2f} times as slow as the others: {}", row.rank, row.host,
                     row.factor, row.guess);
}

// Judges by the times of the whole run, or, where they were lost, by what the run noticed.
void add_slow_ranks(const Run& run, Answer& out, Findings& findings) {
  const std::vector<SlowRankRow>& noticed = run.history.slow_ranks;
  std::string text;
  if (run.times) text = slow_rank_text(run, out).value_or("");
  if (!noticed.empty()) {
    const SlowRankRow& newest = noticed.back();
    if (!run.times) text = slow_text(newest);
    out.evidence.push_back(fmt::format(
        "The run warned {} time{} of a slow rank; the newest, at step {}: {}.", noticed.size(),
        noticed.size() == 1 ? "" : "s", with_commas(newest.step), slow_text(newest)));
  }
  out.facts["slow_rank"] = !text.empty();
  if (!text.empty()) findings.push_back({"slow_rank", text});
}

}  // namespace

std::vector<RankLive> ranks_of(const RunFacts& facts) {
  std::vector<RankLive> out;
  if (!facts.live.is_object() || !facts.live.contains("ranks")) return out;
  for (const ReadJson& rank : facts.live["ranks"]) {
    if (number(rank, "step_seconds") <= 0) continue;
    const ReadJson usage = rank.value("usage", ReadJson::object());
    out.push_back({.rank = rank.value("rank", 0),
                   .host = rank.value("host", ""),
                   .step = number(rank, "step_seconds"),
                   .compute = number(rank, "compute_seconds"),
                   .wait = number(rank, "wait_seconds"),
                   .data = number(rank, "data_seconds"),
                   .cores = number(usage, "cores"),
                   .machine_cores = number(usage, "machine_cores"),
                   .machine_share = number(usage, "machine_share"),
                   .memory_bytes = number(usage, "memory_bytes"),
                   .in_bytes = number(usage, "in_bytes_per_second"),
                   .out_bytes = number(usage, "out_bytes_per_second"),
                   .link_bytes = number(usage, "link_bytes_per_second"),
                   .retransmits = number(usage, "retransmits_per_second"),
                   .interface = usage.value("interface", "")});
  }
  return out;
}

namespace {

// Adds floating-point operations a step and their share of the peak.
void add_flops(const Run& run, const ReportOptions& options, double step_seconds, Answer& out) {
  const RunHistory& h = run.history;
  std::vector<double> targets, sources, items;
  for (const StepRow& row : h.steps) {
    targets.push_back(row.targets);
    sources.push_back(row.sources);
    items.push_back(row.items);
  }
  const StepWork work{mean(targets), mean(sources), mean(items), run.facts.number("images.size")};
  const auto count =
      run.facts.weights ? count_flops(run.facts.weights->tensors, work) : std::nullopt;
  if (count && step_seconds > 0) {
    const double rate = count->flops / step_seconds;
    out.facts["flops_a_step"] = count->flops;
    out.facts["flops_per_second"] = rate;
    out.evidence.push_back(fmt::format("{} flop a step ({}) in {}: {}flop/s of {} rank{}.",
                                       short_number(count->flops), count->formula,
                                       milliseconds(step_seconds), short_number(rate),
                                       run.facts.ranks(), run.facts.ranks() == 1 ? "" : "s"));
    if (options.peak_tflops > 0) {
      const double mfu = rate / (options.peak_tflops * 1e12);
      out.facts["mfu"] = mfu;
      out.verdict += fmt::format(" That is {} of the peak of {:g} Tflop/s (MFU).", percent(mfu),
                                 options.peak_tflops);
    }
    out.method = fmt::format(
        "Flop from the shapes of the weights: two a multiply-add, the backward pass twice the "
        "forward "
        "pass (Kaplan et al. 2020, section 2.1). Not counted: {}.",
        count->omits);
  } else {
    out.not_measured.push_back({"floating-point operations",
                                run.facts.weights
                                    ? "the step's work is not known for this network"
                                    : "there is no complete checkpoint to count weights in",
                                "keep a checkpoint"});
  }
  if (options.peak_tflops <= 0) {
    out.facts["mfu"] = nullptr;
    out.not_measured.push_back(
        {"share of the peak (MFU)", "the processors' peak is not in the run folder",
         "lockstep report --peak-tflops N; `lockstep doctor` measures what the machines reach"});
  }
}

Figure speed_figure(const Run& run) {
  Figure figure{.name = "speed",
                .title = "Speed",
                .caption =
                    "Of all ranks, during steps; means of neighbours where there are more than "
                    "400."};
  PlotPanel panel{.x = {.title = "step", .whole = true},
                  .y = {.title = run.facts.unit() + "/s", .from = 0.0}};
  panel.series = {series_of("speed", run.history, [](const StepRow& row) {
    return row.seconds > 0 ? row.targets / row.seconds : std::nan("");
  })};
  figure.panels.push_back(panel);
  return figure;
}

}  // namespace

Answer answer_processors(const Run& run, const ReportOptions& options, Findings& findings) {
  Answer out{.id = "processors", .question = "Were the processors fully used?"};
  const RunHistory& h = run.history;
  if (h.steps.empty()) {
    out.verdict = "No step was recorded.";
    return out;
  }
  const StepDurations t = step_durations(h);
  const double busy = t.mean > 0 ? t.compute / t.mean : 0;
  out.facts["computing_share_of_step"] = busy;
  out.verdict = fmt::format(
      "{} {} of a step's time; {} it waited for others and the network, {} for data.",
      phases_by_host_clock(run) ? "By the host's clock rank 0 was queuing work for its GPU, or "
                                  "computing, for"
                                : "Rank 0 was computing for",
      percent(busy), percent(t.mean > 0 ? t.wait / t.mean : 0),
      percent(t.mean > 0 ? t.data / t.mean : 0));
  if (t.data > 0.1 * t.mean) {
    findings.push_back(
        {"data_wait", fmt::format("a step waits {} for data", percent(t.data / t.mean))});
  }
  add_flops(run, options, t.mean, out);
  const std::vector<RankLive> ranks = ranks_of(run.facts);
  if (!ranks.empty()) {
    out.evidence.emplace_back(
        "Each rank over the newest 20 seconds of the run, as its heartbeat told:");
    out.tables.push_back(rank_table(ranks));
  }
  if (run.times) add_rank_phases(run, out);
  add_host_clock(run, out);
  add_slow_ranks(run, out, findings);
  add_processor_use(run, busy, out, findings);
  out.figures.push_back(speed_figure(run));
  return out;
}

namespace {

constexpr double kMuchWaiting = 0.15;  // of a step: above it the exchange is a bottleneck

// The part of a step that is exposed communication, and whether it is much.
void judge_exchange(const Run& run, Answer& out, Findings& findings) {
  const int hosts = run.facts.hosts();
  const ExchangeFigures e = exchange_figures(*run.times);
  const double share = e.step > 0 ? (e.exposed + e.peers) / e.step : 0;
  const bool bound = e.exposed > kMuchWaiting * e.step;
  out.facts["wait_share"] = share;
  if (phases_by_host_clock(run)) {
    const double most = most_waiting_share(run);
    out.facts["most_waiting_share"] = most;
    out.facts["bottleneck"] = false;
    if (most > kMuchWaiting) out.facts["bottleneck"] = nullptr;
    out.verdict = fmt::format(
        "{}: of a step on GPUs at most {} is waiting for others and communication that computing "
        "does not hide; the host's clock does not tell it from the update of the weights.",
        most > kMuchWaiting ? "Not decided" : "No", percent(most));
    out.method = fmt::format(
        "With GPUs the host waits for the exchange in the optimizer's phase: both together are the "
        "most that waiting can be, from times/. Up to {} of a step it is no bottleneck.",
        percent(kMuchWaiting));
    return;
  }
  out.facts["bottleneck"] = bound && hosts > 1;
  const char* path = hosts > 1 ? "the network" : "shared memory of the one machine";
  if (bound) {
    out.verdict =
        fmt::format("Yes: {} of a step is communication through {} that computing does not hide.",
                    percent(e.exposed / e.step), path);
    findings.push_back({hosts > 1 ? "network_bound" : "exchange_bound", out.verdict});
  } else if (share > kMuchWaiting) {
    out.verdict =
        fmt::format("No: {} of a step is waiting, but mostly for a slower rank.", percent(share));
  } else {
    out.verdict =
        fmt::format("No: {} of a step is waiting for others and {}.", percent(share), path);
  }
  out.method = fmt::format(
      "Waiting until the last rank had come is for peers, the rest of it is exposed communication; "
      "times are means over ranks and steps, from times/. Above {} of a step it counts as a "
      "bottleneck.",
      percent(kMuchWaiting));
}

// Each host's interface as its heartbeats told it last.
void add_interfaces(const Run& run, const ReportOptions& options, Answer& out, Findings& findings) {
  TextTable links{{"host", "interface", "in", "out", "link", "used", "retransmits"}, {}, "llrrrrr"};
  std::vector<std::string> seen;
  for (const RankLive& r : ranks_of(run.facts)) {
    if (r.interface.empty() || std::count(seen.begin(), seen.end(), r.host) > 0) continue;
    seen.push_back(r.host);
    const double used = std::max(r.in_bytes, r.out_bytes);
    const double link = known_link(run, options, r.link_bytes).bytes_per_second;
    links.rows.push_back(
        {r.host, r.interface, short_bytes(r.in_bytes) + "/s", short_bytes(r.out_bytes) + "/s",
         link > 0 ? short_bytes(link) + "/s" : "not known", link > 0 ? percent(used / link) : "-",
         fmt::format("{:.1f}/s", r.retransmits)});
    if (r.retransmits > 10) {
      findings.push_back({"retransmits", fmt::format("{} sends {:.0f} TCP segments again a second",
                                                     r.host, r.retransmits)});
    }
  }
  if (run.facts.hosts() < 2 || links.rows.empty()) return;
  out.evidence.emplace_back(
      "Used against available over the newest 20 seconds, all programs of the machine:");
  out.tables.push_back(links);
}

void add_choices(const Run& run, Answer& out) {
  const ExchangeFigures e = exchange_figures(*run.times);
  if (e.exposed <= 0 || e.exposed >= e.step) return;
  TextTable table{{"if", "because", "speed-up"}, {}, "llr"};
  for (const WhatIf& w : measured_choices(run)) {
    table.rows.push_back({w.name, w.reason,
                          w.high - w.low < 0.005
                              ? fmt::format("{:.2f} x", w.high)
                              : fmt::format("{:.2f} to {:.2f} x", w.low, w.high)});
    out.facts["what_if"][w.name] = {{"low", w.low}, {"high", w.high}};
  }
  out.evidence.emplace_back(
      "What other choices could give, from exposed and hidden communication:");
  out.tables.push_back(table);
}

}  // namespace

Answer answer_network(const Run& run, const ReportOptions& options, Findings& findings) {
  Answer out{.id = "network", .question = "Was the network the bottleneck?"};
  const int ranks = run.facts.ranks(), hosts = run.facts.hosts();
  out.facts["ranks"] = ranks;
  out.facts["hosts"] = hosts;
  if (run.history.steps.empty() || ranks < 2) {
    out.verdict =
        ranks < 2 ? "No: there was one rank, so nothing was exchanged." : "No step was recorded.";
    out.facts["bottleneck"] = false;
    return out;
  }
  if (run.times) {
    add_exchange(run, known_link(run, options), out);
    judge_exchange(run, out, findings);
    add_host_clock(run, out);
  } else {
    out.verdict = "Not measured: the times of its steps (times/) are not in the run folder.";
    out.facts["bottleneck"] = nullptr;
    out.not_measured.push_back({"what ranks waited for", "there is no times/",
                                "keep the whole run folder of rank 0; a run that ended within its "
                                "first steps has none"});
  }
  if (hosts == 1) {
    out.evidence.emplace_back(
        "All ranks ran on one machine and exchanged through its memory; no network was in use.");
  }
  add_interfaces(run, options, out, findings);
  if (run.times && !phases_by_host_clock(run)) add_choices(run, out);
  if (run.facts.value("comm.strategy", "every_step") != "every_step") {
    out.evidence.push_back(
        fmt::format("Ranks met every {} steps only ({}): waits at meetings were {} in all.",
                    run.facts.value("comm.local_steps"), run.facts.value("comm.strategy"),
                    short_duration(run.history.meeting_seconds)));
  }
  add_timeline(run, out);
  if (hosts > 1) add_link_use(run, options, out, findings);
  return out;
}

}  // namespace lockstep
