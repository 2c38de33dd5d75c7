#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/compare/comparison_parts.h"

namespace lockstep {

namespace {

enum class CurveAxis { kEpoch, kSeconds };

// One value per evaluation (or epoch) of a run.
struct CurvePoint {
  double epoch = 0, seconds = 0, value = 0;
};

std::vector<CurvePoint> metric_curve(const std::string& metric, const ComparedRun& run) {
  std::vector<CurvePoint> out;
  for (const EvaluationFigures& e : run.run->evaluations) {
    auto value = e.metrics.find(metric);
    if (value == e.metrics.end()) continue;
    out.push_back(
        {e.epoch.value_or(static_cast<double>(e.step)), e.training_seconds, value->second});
  }
  return out;
}

std::vector<CurvePoint> loss_curve(const ComparedRun& run) {
  std::vector<CurvePoint> out;
  double done = 0;
  for (const EpochFigures& e : run.run->epochs) {
    done += 1;
    if (e.complete) out.push_back({done, e.training_seconds, e.loss});
  }
  return out;
}

// Averages the n-th points of all runs of a group; runs that ended early contribute those that they
// have.
std::vector<PlotPoint> mean_curve(const std::vector<std::vector<CurvePoint>>& curves,
                                  CurveAxis axis) {
  std::vector<PlotPoint> out;
  std::size_t longest = 0;
  for (const auto& curve : curves) longest = std::max(longest, curve.size());
  for (std::size_t i = 0; i < longest; ++i) {
    std::vector<double> x, y;
    for (const auto& curve : curves) {
      if (i >= curve.size()) continue;
      x.push_back(axis == CurveAxis::kEpoch ? curve[i].epoch : curve[i].seconds);
      y.push_back(curve[i].value);
    }
    const Spread value = spread_of(y);
    out.push_back({spread_of(x).mean, value.mean, value.deviation});
  }
  return out;
}

struct CurveFigure {
  std::string value, x_title;  // axis titles
  CurveAxis axis;
  std::string metric;  // empty: training losses, by epoch
};

// Draws one panel per set-up with one series per combination of the other values; where only
// set-ups differ, one panel with one series per set-up.
Figure curves(const Comparison& c, const CurveFigure& what) {
  const bool setups_alone =
      std::all_of(c.groups.begin(), c.groups.end(), [&](const ComparedGroup& group) {
        return group_name(c, group, "", false) == group_name(c, c.groups.front(), "", false);
      });
  Figure figure{.name = "", .title = "", .caption = "", .panels = {}};
  for (const ComparedGroup& group : c.groups) {
    std::vector<std::vector<CurvePoint>> found;
    for (std::size_t i : group.runs) {
      const ComparedRun& run = c.runs[i];
      if (!run.run || !run.is_done()) continue;
      auto curve = what.metric.empty() ? loss_curve(run) : metric_curve(what.metric, run);
      if (!curve.empty()) found.push_back(std::move(curve));
    }
    if (found.empty()) continue;
    const bool own_panel = group.setup && c.setups_differ() && !setups_alone;
    const std::string title = own_panel ? group.setup->text() : "";
    auto panel = std::find_if(figure.panels.begin(), figure.panels.end(),
                              [&](const PlotPanel& p) { return p.title == title; });
    if (panel == figure.panels.end()) {
      figure.panels.push_back({.title = title,
                               .x = from_zero(what.x_title),
                               .y = {.title = what.value, .marks = {}, .names = {}},
                               .series = {}});
      panel = figure.panels.end() - 1;
    }
    series_named(*panel, group_name(c, group, "", setups_alone)).points =
        mean_curve(found, what.axis);
  }
  // All panels have the same scale, so that they can be compared.
  double low = HUGE_VAL, high = -HUGE_VAL, furthest = 0;
  for (const PlotPanel& panel : figure.panels) {
    for (const PlotSeries& series : panel.series) {
      for (const PlotPoint& p : series.points) {
        low = std::min(low, p.y - p.error);
        high = std::max(high, p.y + p.error);
        furthest = std::max(furthest, p.x);
      }
    }
  }
  for (PlotPanel& panel : figure.panels) {
    panel.x.whole = what.axis == CurveAxis::kEpoch;
    panel.y.from = low;
    panel.y.to = high;
    panel.x.to = furthest;
  }
  return figure;
}

}  // namespace

void add_curve_figures(const Comparison& c, std::vector<Figure>& out) {
  bool by_epoch = true;
  for (const ComparedRun& run : c.runs) {
    if (!run.run) continue;
    for (const EvaluationFigures& e : run.run->evaluations) by_epoch &= e.epoch.has_value();
  }
  const std::string x = by_epoch ? "epoch" : "step";
  auto finished = [&](Figure figure, const std::string& name, const std::string& title) {
    figure.name = file_name(name);
    figure.title = title;
    figure.caption = repeats_text(c);
    add_figure(out, std::move(figure));
  };
  if (!c.metric.empty()) {
    finished(curves(c, {.value = metric_title(c.metric),
                        .x_title = x,
                        .axis = CurveAxis::kEpoch,
                        .metric = c.metric}),
             c.metric + "-" + x, fmt::format("{} against {}s of training", c.metric, x));
    finished(curves(c, {.value = metric_title(c.metric),
                        .x_title = "seconds of training",
                        .axis = CurveAxis::kSeconds,
                        .metric = c.metric}),
             c.metric + "-seconds",
             fmt::format("{} against time (evaluations not counted)", c.metric));
  }
  for (const std::string& metric : c.further) {
    if (metric == "loss") continue;  // the training loss has the figure's name
    finished(curves(c, {.value = metric_title(metric),
                        .x_title = x,
                        .axis = CurveAxis::kEpoch,
                        .metric = metric}),
             metric + "-" + x, fmt::format("{} against {}s of training", metric, x));
  }
  finished(
      curves(
          c,
          {.value = "training loss", .x_title = "epoch", .axis = CurveAxis::kEpoch, .metric = ""}),
      "loss-epoch", "Training loss against epochs");
}

}  // namespace lockstep
