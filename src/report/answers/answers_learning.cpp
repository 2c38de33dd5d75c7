// Answers questions 2 and 3: is it trained to the end, did it overfit.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/answers/answers.h"
#include "report/answers/convergence.h"
#include "report/compare/comparison_parts.h"
#include "report/draw/figure_text.h"
#include "report/run/analysis_series.h"

namespace lockstep {

namespace {

bool higher_is_better(const std::string& metric) {
  for (const char* name : {"loss", "nll", "perplexity", "ter", "broken", "rmse", "mse"}) {
    if (metric == name) return false;
  }
  return true;
}

// Returns the first of evaluation.metrics that the evaluations have, else their loss.
std::string metric_of(const Run& run) {
  std::vector<std::string> names;
  const std::string text = run.facts.value("evaluation.metrics");
  for (std::string name : split(text, ',')) {
    std::erase_if(name,
                  [](char c) { return c == '[' || c == ']' || c == '"' || c == '\'' || c == ' '; });
    names.push_back(name);
  }
  for (const char* usual : {"nll", "loss"}) names.emplace_back(usual);
  for (const std::string& name : names) {
    for (const EvaluationRow& row : run.history.evaluations) {
      if (row.metrics.contains(name)) return name;
    }
  }
  return "";
}

std::vector<Point> points_of(const Run& run, const std::string& metric) {
  std::vector<Point> out;
  for (const EvaluationRow& row : run.history.evaluations) {
    auto found = row.metrics.find(metric);
    if (found != row.metrics.end() && std::isfinite(found->second)) {
      out.push_back({static_cast<double>(row.step), found->second});
    }
  }
  return out;
}

PlotSeries series_of(const std::string& name, const std::vector<Point>& points) {
  PlotSeries out{.name = name, .points = {}};
  for (const Point& p : points) out.points.push_back({p.x, p.y});
  return out;
}

// Returns, per evaluation, the mean training loss of the steps since the previous one.
std::vector<Point> training_at(const Run& run, const std::vector<Point>& evaluations) {
  std::vector<Point> out;
  std::size_t at = 0;
  const auto& steps = run.history.steps;
  double last = std::numeric_limits<double>::quiet_NaN();
  for (const Point& p : evaluations) {
    double sum = 0, count = 0;
    for (; at < steps.size() && static_cast<double>(steps[at].step) <= p.x; ++at) {
      if (!std::isfinite(steps[at].nll)) continue;
      sum += steps[at].nll;
      count += 1;
    }
    if (count > 0) last = sum / count;
    out.push_back({p.x, last});
  }
  return out;
}

// Adds what the schedule says about training longer: at a rate near zero, more steps change
// nothing.
void add_rate_note(const Run& run, Answer& out) {
  double peak = 0;
  for (const StepRow& row : run.history.steps) {
    if (std::isfinite(row.lr)) peak = std::max(peak, row.lr);
  }
  if (peak <= 0) return;
  const double share = run.history.steps.back().lr / peak;
  out.facts["learning_rate_share_of_peak"] = share;
  if (share < 0.05) {
    out.evidence.push_back(fmt::format(
        "The learning rate had fallen to {} of its peak: the schedule is at its end, and going on "
        "needs a longer one. The curve's flatness is in part the schedule's.",
        percent(share)));
  }
}

Figure trend_figure(const Run& run, const std::string& metric, const std::vector<Point>& points,
                    const Trend& trend) {
  Figure figure{.name = "evaluation",
                .title = metric_title(metric) + " on the evaluation split",
                .caption = "Every evaluation."};
  PlotPanel panel{.x = {.title = "step", .whole = true}, .y = {.title = metric_title(metric)}};
  panel.series.push_back(series_of(metric, points));
  if (trend.evaluations > 0) {
    const LineFit line = fit_line({points.end() - trend.evaluations, points.end()});
    PlotSeries drawn{.name = "slope of the last half", .points = {}, .reference = true};
    for (double x : {trend.first_step, trend.last_step}) {
      drawn.points.push_back({x, line.intercept + line.slope * x});
    }
    panel.series.push_back(drawn);
    figure.caption += " The dashed line is the slope of the last half.";
  }
  figure.panels.push_back(panel);
  return figure;
}

void add_saturation(const Run& run, const std::vector<Point>& points, bool higher, Answer& out) {
  const auto fit = fit_saturation(points, higher);
  if (!fit) {
    out.facts["gain_of_twice_the_steps"] = nullptr;
    out.evidence.push_back(
        "How much as many steps again would give cannot be told: too few evaluations, no bend in "
        "the curve yet, or too much scatter for a fit.");
    return;
  }
  out.facts["gain_of_twice_the_steps"] = {{"expected", fit->gain},
                                          {"low", fit->gain_low},
                                          {"high", fit->gain_high},
                                          {"power", fit->power},
                                          {"limit", fit->end}};
  out.evidence.push_back(fmt::format(
      "If the curve went on as it bent so far, as many steps again would give {:.3g} more, between "
      "{:.3g} and {:.3g} (95 %). This holds for the same schedule and data only.",
      fit->gain, fit->gain_low, fit->gain_high));
}

// A trend of a metric, as it is told.
struct ToldTrend {
  const Trend& trend;
  const std::string& metric;
  std::size_t evaluations;
  std::string slope;
};

void judge_trained(const ToldTrend& told, Answer& out, Findings& findings) {
  const std::string& metric = told.metric;
  switch (told.trend.kind) {
    case TrendKind::kImproving:
      out.verdict = fmt::format("No: {} was still getting better when it ended.", metric);
      findings.push_back(
          {"still_improving", fmt::format("{} still improves: {}", metric, told.slope)});
      break;
    case TrendKind::kLevel:
      out.verdict = fmt::format("Yes, as far as {} tells: it had levelled off.", metric);
      break;
    case TrendKind::kWorse:
      out.verdict = fmt::format("It was trained past its best: {} got worse at the end.", metric);
      findings.push_back({"getting_worse", fmt::format("{} gets worse: {}", metric, told.slope)});
      break;
    case TrendKind::kUnknown:
      out.verdict = fmt::format("Cannot be told from {} evaluation{}.", told.evaluations,
                                told.evaluations == 1 ? "" : "s");
      break;
  }
}

// Gives the verdict and its figures.
void tell_overfit(const Overfit& o, std::size_t evaluations, Answer& out, Findings& findings) {
  const std::string turn = with_commas(static_cast<int64_t>(o.turning_point));
  const char* kinds[] = {"cannot_be_told", "none", "begun", "clear"};
  out.facts["overfitting"] = kinds[static_cast<int>(o.kind)];
  if (o.kind == OverfitKind::kUnknown) {
    out.verdict = fmt::format("Cannot be told from {} evaluation{}.", evaluations,
                              evaluations == 1 ? "" : "s");
    out.not_measured.push_back(
        {"the turning point", "fewer than 4 evaluations", "evaluate more often"});
  } else {
    out.facts["turning_point"] = o.turning_point;
    out.facts["lowest_loss"] = o.lowest;
    out.facts["last_loss"] = o.last;
    out.facts["gap_at_turn"] = o.gap_at_turn;
    out.facts["gap_last"] = o.gap_last;
    out.evidence.push_back(
        fmt::format("Evaluation loss: lowest {:.4g} at step {}, {:.4g} at the end; from one "
                    "evaluation to the "
                    "next it scatters by {:.2g}. Evaluation minus training loss: {:+.3g} there, "
                    "{:+.3g} at the "
                    "end.",
                    o.lowest, turn, o.last, o.noise, o.gap_at_turn, o.gap_last));
  }
  if (o.kind == OverfitKind::kNone) {
    out.verdict = "No: the evaluation loss did not rise beyond its scatter.";
    if (o.gap_last > 0.5 * std::abs(o.last)) {
      out.verdict += " But the training loss is far below it: it memorises.";
    }
  } else if (o.kind == OverfitKind::kBegun) {
    out.verdict = fmt::format("It may have begun to, around step {}.", turn);
    findings.push_back({"overfitting_begun", out.verdict});
  } else if (o.kind == OverfitKind::kClear) {
    out.verdict = fmt::format(
        "Yes, from about step {} on: the evaluation loss rose while the training loss fell.", turn);
    findings.push_back({"overfitting", out.verdict});
  }
}

}  // namespace

Answer answer_trained(const Run& run, Findings& findings) {
  Answer out{.id = "trained", .question = "Is it trained to the end, and how can one tell?"};
  const std::string metric = metric_of(run);
  out.method =
      "Slope: least squares through the last half of the evaluations (4 or more), its interval "
      "from the residuals' scatter by Student's t (Draper and Smith 1998, section 1.4); successive "
      "evaluations are not independent, so the true interval is somewhat wider. Expected gain: "
      "y = a - b x^-c (pow3 of Domhan, Springenberg and Hutter 2015) with a bootstrap of the "
      "residuals (Efron 1979). A gain counts from 1 % of what the whole run gained.";
  if (metric.empty()) {
    out.verdict = "Not measured: the run has no evaluation.";
    out.facts["trend"] = "not_measured";
    out.not_measured.push_back({"quality on held-out data", "there was no evaluation",
                                "set evaluation.every or evaluation.every_epochs"});
    return out;
  }
  const bool higher = higher_is_better(metric);
  const std::vector<Point> points = points_of(run, metric);
  const Trend trend = judge_trend(points, higher);
  const double last = points.back().y;
  auto best = std::max_element(points.begin(), points.end(), [&](const Point& a, const Point& b) {
    return higher ? a.y < b.y : a.y > b.y;
  });
  const char* kinds[] = {"cannot_be_told", "improving", "level", "worse"};
  out.facts["metric"] = metric;
  out.facts["evaluations"] = points.size();
  out.facts["last"] = last;
  out.facts["best"] = best->y;
  out.facts["best_step"] = best->x;
  out.facts["trend"] = kinds[static_cast<int>(trend.kind)];
  const std::string slope =
      fmt::format("{:+.3g} ± {:.2g} per 1,000 steps", trend.slope * 1e3, trend.margin * 1e3);
  judge_trained({trend, metric, points.size(), slope}, out, findings);
  out.evidence.push_back(fmt::format("{}: {:.5g} at the newest evaluation, best {:.5g} at step {}.",
                                     metric, last, best->y,
                                     with_commas(static_cast<int64_t>(best->x))));
  if (trend.evaluations > 0) {
    out.facts["slope_per_1000_steps"] = trend.slope * 1e3;
    out.facts["slope_margin_per_1000_steps"] = trend.margin * 1e3;
    out.facts["gain_of_a_tenth_more"] = trend.gain_of_tenth;
    out.evidence.push_back(fmt::format(
        "Slope over the last {} evaluations: {} (95 %). A tenth more steps would then change it "
        "for the better by {:.3g} ± {:.2g}; the whole run gained {:.3g}.",
        trend.evaluations, slope, trend.gain_of_tenth, trend.gain_margin, trend.whole_change));
  } else {
    out.not_measured.push_back({"the slope", "fewer than 4 evaluations",
                                "evaluate more often: evaluation.every, evaluation.every_epochs"});
  }
  add_saturation(run, points, higher, out);
  add_rate_note(run, out);
  out.figures.push_back(trend_figure(run, metric, points, trend));
  return out;
}

Answer answer_overfitting(const Run& run, Findings& findings) {
  Answer out{.id = "overfitting", .question = "Did it overfit?"};
  std::string loss;
  for (const char* name : {"nll", "loss"}) {
    if (loss.empty() && !points_of(run, name).empty()) loss = name;
  }
  Figure figure{.name = "loss",
                .title = "Training and evaluation loss",
                .caption =
                    "Negative log-likelihood a target. Training: with dropout and "
                    "augmentation, as it was seen; means of neighbouring steps."};
  PlotPanel panel{.x = {.title = "step", .whole = true}, .y = {.title = "nats a target"}};
  panel.series.push_back(series_of("training", run.history, &StepRow::nll));
  if (loss.empty()) {
    out.verdict = "Not measured: no evaluation gave a loss.";
    out.facts["overfitting"] = "not_measured";
    out.not_measured.push_back({"loss on held-out data", "there was no evaluation with one",
                                "set evaluation.every or evaluation.every_epochs"});
  } else {
    const std::vector<Point> evaluation = points_of(run, loss);
    const std::vector<Point> training = training_at(run, evaluation);
    panel.series.push_back(series_of("evaluation", evaluation));
    const Overfit o = judge_overfit(evaluation, training);
    tell_overfit(o, evaluation.size(), out, findings);
    if (run.facts.number("model.dropout") > 0 || run.facts.value("task.name") == "images") {
      out.evidence.emplace_back(
          "Training loss is measured with dropout or augmented images, evaluation without: the gap "
          "is smaller than it would be on equal terms, and may be negative.");
    }
  }
  figure.panels.push_back(panel);
  if (!run.history.steps.empty()) out.figures.push_back(figure);
  out.method =
      "The turning point is the evaluation with the lowest loss. It counts as overfitting when the "
      "last evaluations (3 at most) lie above it by more than 3 times the scatter (begun: 2 times) "
      "and 1 %, while the training loss went down. Scatter: from second differences.";
  return out;
}

}  // namespace lockstep
