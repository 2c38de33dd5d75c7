#include "report/compare/comparison_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/text.h"
#include "report/compare/comparison_parts.h"

namespace lockstep {

namespace {

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Returns "images per rank", "tokens a step", "learning rate".
std::string axis_title(const std::string& key, const std::vector<std::string>& keys) {
  if (key == "batch.per_rank") return "batch per rank";
  const std::string name = short_key(key, keys);
  const bool of_a_rank = key.ends_with(kPerRank);
  if (key.starts_with("batch.")) return name + (of_a_rank ? "" : " a step");
  return name == "lr" ? "learning rate" : name;
}

PlotAxis axis_of_key(const Comparison& c, std::size_t key) {
  PlotAxis axis{.title = axis_title(c.keys[key], c.keys), .marks = {}, .names = {}};
  double low = HUGE_VAL, high = 0;
  for (const ComparedGroup& group : c.groups) {
    const double value = *number_of(group.values[key]);
    axis.marks.push_back(value);
    low = std::min(low, value);
    high = std::max(high, value);
  }
  axis.logarithmic = low > 0 && high >= 4 * low;
  return axis;
}

bool is_numeric(const Comparison& c, std::size_t key) {
  return std::all_of(c.groups.begin(), c.groups.end(), [&](const ComparedGroup& group) {
    return number_of(group.values[key]).has_value();
  });
}

PlotPanel panel_against_key(const Comparison& c, std::size_t key, const std::string& figure,
                            PlotAxis y) {
  PlotPanel panel{.title = "", .x = axis_of_key(c, key), .y = std::move(y), .series = {}};
  for (const ComparedGroup& group : c.groups) {
    const Spread& spread = group.figures.at(figure);
    if (spread.count == 0) continue;
    series_named(panel, group_name(c, group, c.keys[key], true))
        .points.push_back({*number_of(group.values[key]), spread.mean, spread.deviation});
  }
  finish(panel);
  return panel;
}

bool any_figure(const Comparison& c, const std::string& name) {
  return std::any_of(c.groups.begin(), c.groups.end(),
                     [&](const ComparedGroup& group) { return group.figures.at(name).count > 0; });
}

// Adds epoch (or step) time and items per second, and the metric where there is one, against each
// key of numbers.
void add_figures_of_keys(const Comparison& c, std::vector<Figure>& out) {
  for (std::size_t key = 0; key < c.keys.size(); ++key) {
    if (!is_numeric(c, key)) continue;
    const std::string title = axis_title(c.keys[key], c.keys), file = file_name(c.keys[key]);
    const bool epochs = any_figure(c, "epoch_seconds");
    const char* time = epochs ? "epoch_seconds" : "step_seconds";
    Figure figure{.name = fmt::format("{}-time-{}", epochs ? "epoch" : "step", file),
                  .title = fmt::format("{} time against {}", epochs ? "Epoch" : "Step", title),
                  .caption = "Left: seconds of " +
                             std::string(epochs ? "an epoch's steps" : "a step (median)") +
                             "; right: samples of all ranks a second. " + repeats_text(c),
                  .panels = {}};
    figure.panels.push_back(
        panel_against_key(c, key, time, from_zero(epochs ? "epoch time (s)" : "step time (s)")));
    figure.panels.push_back(
        panel_against_key(c, key, "items_per_second", from_zero("samples per second")));
    add_figure(out, std::move(figure));
    if (c.metric.empty()) continue;
    Figure metric{.name = fmt::format("{}-{}", file_name(c.metric), file),
                  .title = fmt::format("{} against {}", c.metric, title),
                  .caption = "Best evaluation of each run. " + repeats_text(c),
                  .panels = {}};
    metric.panels.push_back(panel_against_key(
        c, key, "best", {.title = metric_title(c.metric), .marks = {}, .names = {}}));
    add_figure(out, std::move(metric));
  }
}

// Adds epoch time, and the part of it that ranks wait, against the delay between the hosts.
void add_delay(const Comparison& c, std::vector<Figure>& out) {
  std::set<double> delays;
  for (const ComparedGroup& group : c.groups) {
    if (group.network) delays.insert(group.network->delay_ms);
  }
  if (delays.size() < 2) return;
  const bool epochs = any_figure(c, "epoch_seconds");
  const std::string unit = epochs ? "an epoch" : "a step";
  Figure figure{.name = "time-delay",
                .title = fmt::format("{} time and waiting against the network's delay",
                                     epochs ? "Epoch" : "Step"),
                .caption = fmt::format(
                    "Waiting: communication that computing does not hide, a part of {}. Delay: one "
                    "way, between virtual hosts. {}",
                    unit, repeats_text(c)),
                .panels = {}};
  for (const ComparedGroup& group : c.groups) {
    if (!group.network) continue;
    const Spread& step = group.figures.at("step_seconds");
    const Spread& time = epochs ? group.figures.at("epoch_seconds") : step;
    Spread wait = epochs ? group.figures.at("epoch_wait_seconds") : group.figures.at("wait_share");
    if (time.count == 0) continue;
    if (!epochs) {
      wait.mean *= step.mean;
      wait.deviation *= step.mean;
    }
    std::string name = group_name(c, group, "network", true);
    if (group.network->rate_mbit > 0) name += fmt::format(", {} Mbit/s", group.network->rate_mbit);
    const std::string title = name == "all" ? "" : name;
    auto panel = std::find_if(figure.panels.begin(), figure.panels.end(),
                              [&](const PlotPanel& p) { return p.title == title; });
    if (panel == figure.panels.end()) {
      figure.panels.push_back({.title = title,
                               .x = from_zero("one-way delay (ms)"),
                               .y = from_zero(fmt::format("seconds {}", unit)),
                               .series = {}});
      panel = figure.panels.end() - 1;
    }
    const double delay = group.network->delay_ms;
    series_named(*panel, "time of " + unit).points.push_back({delay, time.mean, time.deviation});
    series_named(*panel, "of it waiting").points.push_back({delay, wait.mean, wait.deviation});
  }
  double highest = 0;
  if (figure.panels.size() == 1) figure.panels[0].title.clear();
  for (PlotPanel& panel : figure.panels) {
    finish(panel);
    for (const PlotSeries& series : panel.series) {
      for (const PlotPoint& p : series.points) highest = std::max(highest, p.y + p.error);
    }
  }
  for (PlotPanel& panel : figure.panels) panel.y.to = highest;
  add_figure(out, std::move(figure));
}

// Adds the speed-up over the fewest ranks, and its share of the ideal.
void plot_scaling(const Comparison& c, std::vector<Figure>& out) {
  std::set<int> ranks;
  std::vector<std::string> setups;
  for (const ComparedGroup& group : c.groups) {
    if (!group.speedup) continue;
    ranks.insert(group.setup->ranks());
    if (std::find(setups.begin(), setups.end(), group.setup->text()) == setups.end()) {
      setups.push_back(group.setup->text());
    }
  }
  if (ranks.size() < 2) return;
  const double fewest = *ranks.begin(), most = *ranks.rbegin();
  PlotPanel speedup{
      .title = "",
      .x = {.title = "ranks", .marks = {ranks.begin(), ranks.end()}, .names = {}},
      .y = from_zero(fmt::format("speed-up over {:g} rank{}", fewest, fewest == 1 ? "" : "s")),
      .series = {}};
  PlotPanel efficiency{
      .title = "",
      .x = {.title = "set-up (hosts x ranks on each)", .marks = {}, .names = setups},
      .y = from_zero("efficiency (%)"),
      .series = {}};
  efficiency.y.to = 100;
  // Set-ups with equally many ranks lie above each other: points, joined for each number of hosts.
  std::set<int> hosts;
  for (const ComparedGroup& group : c.groups) {
    if (group.speedup && group.setup->ranks() > fewest) hosts.insert(group.setup->hosts);
  }
  for (const ComparedGroup& group : c.groups) {
    if (!group.speedup) continue;
    const std::string name = group_name(c, group, "", false);
    const bool is_base = group.setup->ranks() == static_cast<int>(fewest);
    for (int count : hosts) {
      if (!is_base && group.setup->hosts != count) continue;
      const std::string on = fmt::format("{} host{}", count, count == 1 ? "" : "s");
      const std::string full = hosts.size() == 1 ? name : name == "all" ? on : name + ", " + on;
      series_named(speedup, full)
          .points.push_back({static_cast<double>(group.setup->ranks()), *group.speedup});
    }
    const auto place = std::find(setups.begin(), setups.end(), group.setup->text());
    PlotSeries& bars = series_named(efficiency, name == "all" ? "efficiency" : name);
    bars.shape = PlotShape::kBars;
    bars.points.push_back({static_cast<double>(place - setups.begin()), *group.efficiency * 100});
  }
  finish(speedup);
  speedup.series.push_back(
      {.name = "ideal", .points = {{fewest, 1}, {most, most / fewest}}, .reference = true});
  const std::string caption =
      "In samples a second of all ranks, against the same configuration with the fewest ranks. ";
  add_figure(out, {.name = "speed-up",
                   .title = "Speed-up against ranks",
                   .caption = caption + repeats_text(c),
                   .panels = {speedup}});
  add_figure(out,
             {.name = "efficiency",
              .title = "Scaling efficiency by set-up",
              .caption = caption + "100 %: as many times the samples as ranks. " + repeats_text(c),
              .panels = {efficiency}});
}

}  // namespace

std::vector<Figure> comparison_figures(const Comparison& comparison) {
  std::vector<Figure> out;
  add_delay(comparison, out);
  add_figures_of_keys(comparison, out);
  add_curve_figures(comparison, out);
  plot_scaling(comparison, out);
  return out;
}

}  // namespace lockstep
