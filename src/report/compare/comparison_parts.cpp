#include "report/compare/comparison_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/text.h"

namespace lockstep {

namespace {

constexpr std::size_t kMostSeries = 7;  // per panel

// Draws only the first of more series than can be told apart; the caption says so.
void limit_series(Figure& figure) {
  std::size_t most = 0;
  for (PlotPanel& panel : figure.panels) {
    most = std::max(most, panel.series.size());
    if (panel.series.size() > kMostSeries) panel.series.resize(kMostSeries);
  }
  if (most > kMostSeries) {
    figure.caption +=
        fmt::format(" Drawn are the first {} of {}; the table has all.", kMostSeries, most);
  }
}

bool has_points(const Figure& figure) {
  return std::any_of(figure.panels.begin(), figure.panels.end(), [](const PlotPanel& panel) {
    return std::any_of(panel.series.begin(), panel.series.end(),
                       [](const PlotSeries& series) { return !series.points.empty(); });
  });
}

}  // namespace

std::string repeats_text(const Comparison& c) {
  std::set<int> counts;
  for (const ComparedGroup& group : c.groups) {
    const int count = group.figures.at("step_seconds").count;
    if (count > 0) counts.insert(count);
  }
  if (counts.empty() || *counts.rbegin() == 1) return "One run each.";
  const std::string runs = *counts.begin() == *counts.rbegin()
                               ? std::to_string(*counts.begin())
                               : fmt::format("{} to {}", *counts.begin(), *counts.rbegin());
  return fmt::format("Mean of {} runs with different seeds; bars: standard deviation.", runs);
}

std::string group_name(const Comparison& c, const ComparedGroup& group, const std::string& varied,
                       bool with_setup) {
  std::vector<std::string> parts;
  if (with_setup && c.setups_differ() && group.setup) parts.push_back(group.setup->text());
  std::string values = values_text(c, group, [&](const std::string& key) { return key != varied; });
  if (!values.empty()) parts.push_back(values);
  if (varied != "network" && c.networks_differ() && group.network) {
    parts.push_back(network_text(*group.network));
  }
  return parts.empty() ? "all" : join(parts, ", ");
}

PlotSeries& series_named(PlotPanel& panel, const std::string& name) {
  for (PlotSeries& series : panel.series) {
    if (series.name == name) return series;
  }
  panel.series.push_back({.name = name, .points = {}});
  return panel.series.back();
}

void finish(PlotPanel& panel) {
  for (PlotSeries& series : panel.series) {
    std::sort(series.points.begin(), series.points.end(),
              [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; });
  }
}

void add_figure(std::vector<Figure>& out, Figure figure) {
  if (!has_points(figure)) return;
  limit_series(figure);
  out.push_back(std::move(figure));
}

std::string file_name(const std::string& text) {
  std::string out;
  for (char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain) {
      out += c;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  return out;
}

std::string metric_title(const std::string& metric) {
  return metric == "acc1" || metric == "acc5" ? metric + " (%)" : metric;
}

PlotAxis from_zero(std::string title) {
  return {.title = std::move(title), .from = 0, .marks = {}, .names = {}};
}

}  // namespace lockstep
