// Answers question 11: does the traffic fit the formula.
#include <fmt/format.h>

#include "base/statistics.h"
#include "base/text.h"
#include "dist/account/exchange_model.h"
#include "report/answers/analysis_traffic.h"
#include "report/answers/answers.h"
#include "report/answers/answers_phases.h"
#include "report/answers/host_clock.h"
#include "report/answers/known_link.h"
#include "report/draw/figure_text.h"
#include "report/run/analysis_steps.h"
#include "report/run/read_json.h"

namespace lockstep {

namespace {

// Returns the median of the bytes given to all-reduces per step; 0: none, as with one rank.
double bytes_a_step(const RunHistory& history) {
  std::vector<double> sent;
  for (const StepRow& row : history.steps) sent.push_back(row.sent_bytes);
  return sent.empty() ? 0 : median(std::move(sent));
}

// Returns the share of fp32 bytes that hooks leave on the wire.
double hook_factor(const RunFacts& facts) {
  const std::string hook = facts.value("comm.hook", "none");
  return hook.find("fp16") != std::string::npos || hook.find("bf16") != std::string::npos ? 0.5 : 1;
}
bool powersgd(const RunFacts& facts) {
  return facts.value("comm.hook").find("powersgd") != std::string::npos;
}

// Returns "312 ms (250 ms of it hidden)".
std::string exchange_text(const RunTimes& times) {
  const ExchangeFigures e = exchange_figures(times);
  return fmt::format("{} ({} of it hidden)", milliseconds(e.exposed + e.hidden),
                     milliseconds(e.hidden));
}

// Bytes of a step that a host sent, and as many received.
struct MeasuredBytes {
  std::optional<double> bytes;
  bool counted = false;  // by the ranks, over the run; else by the network interface, at its end
};

MeasuredBytes measured_bytes(const Run& run) {
  if (run.times) {
    if (const auto counted = counted_host_bytes(run)) return {*counted, true};
  }
  std::vector<double> of_ranks;
  for (const RankLive& r : ranks_of(run.facts)) {
    if (!r.interface.empty()) of_ranks.push_back((r.in_bytes + r.out_bytes) / 2 * r.step);
  }
  return {of_ranks.empty() ? std::nullopt : std::optional(mean(of_ranks)), false};
}

// Says what is behind the figures.
void explain_bytes(const Run& run, const MeasuredBytes& measured, Answer& out) {
  if (powersgd(run.facts)) {
    out.evidence.emplace_back("comm.hook has powersgd: far fewer bytes go than the formula says.");
  }
  if (hook_factor(run.facts) < 1) {
    out.evidence.push_back(
        fmt::format("comm.hook = {} sends two bytes a number: half of what was "
                    "handed over.",
                    run.facts.value("comm.hook")));
  }
  if (measured.counted) {
    out.evidence.emplace_back(
        "Measured: the mean of what a rank counted as sent and as received, over the whole run.");
  } else if (!measured.bytes) {
    out.not_measured.push_back({"bytes through the network interface", "the heartbeat named none",
                                "see live.json: usage.interface"});
  } else {
    out.evidence.emplace_back(
        "Measured: bytes of the interface over the newest 20 seconds times the step time then, "
        "with "
        "TCP's and Ethernet's 3 to 6 % and whatever else the machine sent.");
  }
}

}  // namespace

Answer answer_traffic(const Run& run, const ReportOptions& options) {
  Answer out{.id = "traffic", .question = "How does the step time relate to the traffic?"};
  const int hosts = run.facts.hosts(), ranks = run.facts.ranks();
  const double handed = bytes_a_step(run.history);
  const double numbers = run.facts.weights ? static_cast<double>(run.facts.weights->numbers) : 0;
  out.facts["hosts"] = hosts;
  out.facts["gradient_bytes"] = handed;
  if (handed > 0) {
    out.evidence.push_back(
        fmt::format("Each rank hands {} of gradients a step to the sum{}.", short_bytes(handed),
                    numbers > 0 ? fmt::format(" ({} weights, {:.2g} bytes each)",
                                              short_number(numbers), handed / numbers)
                                : ""));
  }
  if (ranks < 2 || handed <= 0) {
    out.verdict = ranks < 2 ? "There is none: one rank exchanges nothing."
                            : "Not measured: no step recorded what it sent.";
    return out;
  }
  if (run.times) add_counted_bytes(run, out);
  const double wire = handed * hook_factor(run.facts);
  const StepDurations t = step_durations(run.history);
  if (hosts < 2) {
    out.verdict = fmt::format(
        "All {} ranks share one machine: {} a step go through its memory, none "
        "through a network.",
        ranks, short_bytes(handed));
    out.evidence.push_back(fmt::format(
        "Between n machines each would send and receive 2 (n - 1)/n x {} a step: {} for two, {} "
        "for four.",
        short_bytes(wire), short_bytes(exchange_bytes(wire, 2)),
        short_bytes(exchange_bytes(wire, 4))));
    return out;
  }
  const double predicted = exchange_bytes(wire, hosts);
  const KnownLink link = known_link(run, options);
  out.facts["predicted_bytes"] = predicted;
  TextTable table{{"a step, each host, each way", "predicted", "measured"}, {}, "lrr"};
  const MeasuredBytes measured = measured_bytes(run);
  out.facts["measured_bytes"] = measured.bytes ? ReadJson(*measured.bytes) : ReadJson(nullptr);
  table.rows.push_back(
      {"bytes", short_bytes(predicted), measured.bytes ? short_bytes(*measured.bytes) : "-"});
  add_known_link(link, out);
  add_host_clock(run, out);
  const bool by_host = phases_by_host_clock(run);
  if (link.known()) {
    const double seconds =
        exchange_seconds(wire, hosts, {.bytes_per_second = link.bytes_per_second});
    out.facts["predicted_seconds"] = seconds;
    table.rows.push_back(
        {fmt::format("exchange at {}/s, {}", short_bytes(link.bytes_per_second), link.source),
         milliseconds(seconds), run.times && !by_host ? exchange_text(*run.times) : "-"});
  }
  table.rows.push_back(
      {by_host ? "waiting, by the host's clock" : "waiting that computing does not hide", "-",
       milliseconds(t.wait)});
  table.rows.push_back({"whole step", "-", milliseconds(t.mean)});
  out.tables.push_back(table);
  out.verdict = fmt::format(
      "Ring formula: 2 ({0} - 1)/{0} x {1} = {2} a step for each host, each way.{3}", hosts,
      short_bytes(wire), short_bytes(predicted),
      measured.bytes ? fmt::format(" Measured: {}, {} of it.", short_bytes(*measured.bytes),
                                   percent(*measured.bytes / predicted))
                     : "");
  explain_bytes(run, measured, out);
  out.method =
      "2 (n - 1)/n x S is the least that each of n hosts must send and receive to sum S bytes "
      "(Patarasuk and Yuan 2009, section 3); ranks of one machine add up in its memory first.";
  return out;
}

}  // namespace lockstep
