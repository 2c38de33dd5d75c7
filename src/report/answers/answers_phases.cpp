#include "report/answers/answers_phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "report/draw/figure_text.h"
#include "report/timeline/timeline_figure.h"

namespace lockstep {

namespace {

// Ranks with a line of their own in a plot; with more ranks, three stand for all.
constexpr std::size_t kMostLines = 6;

double share_of(double part, double whole) { return whole > 0 ? part / whole : 0; }

std::string short_seconds(double seconds) {
  return seconds < 60 ? fmt::format("{:.1f} s", seconds) : short_duration(seconds);
}

TextTable phase_table(const RunTimes& times) {
  TextTable out{{"rank", "host", "step", "data", "forward", "backward", "exchange", "for peers",
                 "optimizer", "other", "computing"},
                {},
                "rlrrrrrrrrr"};
  for (std::size_t r = 0; r < times.ranks(); ++r) {
    const RankPhases& p = times.steady[r];
    const auto host = times.hosts.find(static_cast<int>(r));
    std::vector<std::string> row = {std::to_string(r),
                                    host == times.hosts.end() ? "" : host->second};
    for (double seconds :
         {p.step(), p.data, p.forward, p.backward, p.exchange, p.peers, p.optimizer, p.other}) {
      row.push_back(milliseconds(seconds));
    }
    row.push_back(percent(share_of(p.computing(), p.step())));
    out.rows.push_back(std::move(row));
  }
  return out;
}

nlohmann::ordered_json phases_json(const RunTimes& times) {
  auto out = nlohmann::ordered_json::array();
  for (std::size_t r = 0; r < times.ranks(); ++r) {
    const RankPhases& p = times.steady[r];
    const auto host = times.hosts.find(static_cast<int>(r));
    out.push_back({{"rank", r},
                   {"host", host == times.hosts.end() ? "" : host->second},
                   {"step_seconds", p.step()},
                   {"data_seconds", p.data},
                   {"forward_seconds", p.forward},
                   {"backward_seconds", p.backward},
                   {"exchange_seconds", p.exchange},
                   {"peers_seconds", p.peers},
                   {"optimizer_seconds", p.optimizer},
                   {"other_seconds", p.other},
                   {"hidden_seconds", p.hidden},
                   {"sent_bytes", p.sent},
                   {"received_bytes", p.received},
                   {"computing_share", share_of(p.computing(), p.step())}});
  }
  return out;
}

// Returns the ranks that a plot shows: all, or those that compute least, medium and most.
std::vector<std::size_t> shown_ranks(const RunTimes& times) {
  std::vector<std::size_t> out;
  for (std::size_t r = 0; r < times.ranks(); ++r) out.push_back(r);
  if (out.size() <= kMostLines) return out;
  const auto share = [&](std::size_t r) {
    return share_of(times.steady[r].computing(), times.steady[r].step());
  };
  std::sort(out.begin(), out.end(), [&](auto a, auto b) { return share(a) < share(b); });
  return {out.front(), out[out.size() / 2], out.back()};
}

Figure busy_figure(const RunTimes& times) {
  Figure figure{.name = "ranks",
                .title = "Computing, of a step's time",
                .caption =
                    "Forward, backward and optimizer of each rank; the rest is waiting for "
                    "data, peers and the exchange."};
  const std::vector<std::size_t> shown = shown_ranks(times);
  if (shown.size() < times.ranks()) {
    figure.caption +=
        fmt::format(" Of {} ranks those that compute least, medium and most.", times.ranks());
  }
  PlotPanel panel{.x = {.title = "step", .whole = true},
                  .y = {.title = "share of the step", .from = 0.0, .to = 1.0}};
  for (std::size_t r : shown) {
    PlotSeries series{.name = times.rank_name(static_cast<int>(r)), .points = {}};
    for (const TimesBin& bin : times.bins) {
      if (r >= bin.ranks.size() || bin.ranks[r].steps == 0) continue;
      series.points.push_back({static_cast<double>(bin.first + bin.last) / 2,
                               share_of(bin.ranks[r].computing(), bin.ranks[r].step())});
    }
    panel.series.push_back(std::move(series));
  }
  figure.panels.push_back(std::move(panel));
  return figure;
}

}  // namespace

MeasuredSteps measured_steps(const RunTimes& times) {
  const RankPhases& p = times.total.front();
  return {.covers = [&times](int64_t step) { return times.covers(step); },
          .parts = {{"data", "rank 0 waits for the next batch", p.data},
                    {"forward", "and the loss", p.forward},
                    {"backward", "gradients; exchanges that it hides run beside it", p.backward},
                    {"exposed communication", "the exchange, where computing does not hide it",
                     p.exchange},
                    {"waiting for peers", "until the last rank had come", p.peers},
                    {"optimizer", "norm, clipping, update", p.optimizer},
                    {"other in steps", "listeners, checks, what is no phase", p.other}}};
}

void add_hidden_bar(const RunTimes& times, Answer& out) {
  const RankPhases& p = times.total.front();
  out.facts["hidden_communication_seconds"] = p.hidden;
  if (p.hidden <= 0) return;
  double begin = 0;
  for (const BarRow& bar : out.bars) {
    if (bar.name == "forward") begin = bar.begin;
    // Exchanges begin when gradients are ready, so hidden ones lie at the end of the backward pass.
    if (bar.name == "backward") begin = std::max(begin, bar.begin + bar.length - p.hidden);
  }
  out.bars.push_back({"(hidden communication)", short_seconds(p.hidden),
                      "exchanges under way while forward and backward ran: beside them, not in the "
                      "sum",
                      begin, p.hidden});
}

void add_rank_phases(const Run& run, Answer& out) {
  const RunTimes& times = *run.times;
  std::vector<double> shares;
  for (const RankPhases& p : times.steady) shares.push_back(share_of(p.computing(), p.step()));
  const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
  const auto name = [&](auto at) {
    return times.rank_name(static_cast<int>(std::distance(shares.begin(), at)));
  };
  out.facts["ranks"] = phases_json(times);
  out.evidence.push_back(
      shares.size() == 1
          ? fmt::format(
                "Over {} steps the rank was in forward, backward or optimizer for {} of its "
                "time.",
                with_commas(times.steps()), percent(shares.front()))
          : fmt::format(
                "Over {} steps the ranks were in forward, backward or optimizer for {} ({}) "
                "to {} ({}) of their time. A step of each, on average:",
                with_commas(times.steps()), percent(*least), name(least), percent(*most),
                name(most)));
  out.tables.push_back(phase_table(times));
  out.figures.push_back(busy_figure(times));
}

std::optional<std::string> slow_rank_text(const Run& run, Answer& out) {
  const auto slow = find_slow_rank(*run.times);
  if (!slow) return std::nullopt;
  const auto host = run.times->hosts.find(slow->rank);
  out.facts["slowest"] = {
      {"rank", slow->rank},      {"host", host == run.times->hosts.end() ? "" : host->second},
      {"factor", slow->factor},  {"first_step", slow->first},
      {"last_step", slow->last}, {"phase", slow->because}};
  const std::string text = describe(*slow, *run.times);
  out.evidence.push_back(
      fmt::format("By the times of {} steps {}.", with_commas(run.times->steps()), text));
  return text;
}

void add_exchange(const Run& run, const KnownLink& link, Answer& out) {
  const ExchangeFigures e = exchange_figures(*run.times);
  const double whole = e.exposed + e.hidden;
  if (run.facts.hosts() > 1) add_known_link(link, out);
  out.facts["exposed_seconds"] = e.exposed;
  out.facts["hidden_seconds"] = e.hidden;
  out.facts["peers_seconds"] = e.peers;
  out.facts["step_seconds"] = e.step;
  out.evidence.push_back(fmt::format(
      "Of a step of {} ({} steps, mean of all ranks) {} are exposed communication and {} waiting "
      "for ranks that came later; {} more of the exchange lie hidden behind forward and backward, "
      "{} of it.",
      milliseconds(e.step), with_commas(run.times->steps()), milliseconds(e.exposed),
      milliseconds(e.peers), milliseconds(e.hidden), percent(share_of(e.hidden, whole))));
  if (whole <= 0 || e.sent <= 0) return;
  const double rate = e.sent / whole;
  out.facts["exchange_bytes_per_second"] = rate;
  out.evidence.push_back(fmt::format(
      "A rank sends {} a step: {}/s while an exchange is under way, {}/s over the whole step.",
      short_bytes(e.sent), short_bytes(rate), short_bytes(e.sent / e.step)));
  if (!link.known() || !counted_host_bytes(run)) return;
  const double speed = link.bytes_per_second;
  out.facts["link_share_of_exchange"] = rate / speed;
  out.evidence.push_back(fmt::format("The link gives {}/s, {}: exchanges use {} of it, the run {}.",
                                     short_bytes(speed), link.source, percent(rate / speed),
                                     percent(e.sent / e.step / speed)));
}

std::vector<WhatIf> measured_choices(const Run& run) {
  const ExchangeFigures e = exchange_figures(*run.times);
  const std::string hook = run.facts.value("comm.hook");
  const bool halved =
      hook.find("16") != std::string::npos || hook.find("powersgd") != std::string::npos;
  return what_if(e.step, e.exposed, e.hidden, halved);
}

void add_timeline(const Run& run, Answer& out) {
  std::optional<Figure> figure = timeline_figure(run.facts.folder);
  if (figure) {
    out.figures.push_back(std::move(*figure));
  } else {
    out.not_measured.push_back({"single steps, span by span", "the run recorded none of them",
                                "lockstep trace RUN --live 5, while it runs"});
  }
}

std::string mean_step_text(const RunTimes& times) {
  RankPhases all;
  for (const RankPhases& rank : times.steady) {
    if (rank.steps == 0) continue;
    RankPhases one = rank;
    one.steps = 1;
    all.add(one);
  }
  const RankPhases p = all.mean();
  return fmt::format(
      "Of the mean step of a rank {} are forward, {} backward, {} optimizer, {} exposed "
      "communication, {} waiting for peers, {} for data, {} other.",
      milliseconds(p.forward), milliseconds(p.backward), milliseconds(p.optimizer),
      milliseconds(p.exchange), milliseconds(p.peers), milliseconds(p.data), milliseconds(p.other));
}

std::optional<double> counted_host_bytes(const Run& run) {
  const int hosts = run.facts.hosts();
  if (hosts < 2 || std::cmp_not_equal(run.times->ranks(), hosts)) return std::nullopt;
  const ExchangeFigures e = exchange_figures(*run.times);
  const double bytes = (e.sent + e.received) / 2;
  return bytes > 0 ? std::optional(bytes) : std::nullopt;
}

void add_counted_bytes(const Run& run, Answer& out) {
  const ExchangeFigures e = exchange_figures(*run.times);
  out.facts["sent_bytes"] = e.sent;
  out.facts["received_bytes"] = e.received;
  if (e.sent <= 0 && e.received <= 0) return;
  out.evidence.push_back(fmt::format(
      "Counted by the ranks over {} steps: each sends {} and receives {} a step, payload of {}.",
      with_commas(run.times->steps()), short_bytes(e.sent), short_bytes(e.received),
      run.facts.hosts() == 1                                  ? "shared memory or sockets"
      : std::cmp_equal(run.times->ranks(), run.facts.hosts()) ? "sockets"
                                                              : "sockets and shared memory"));
}

}  // namespace lockstep
