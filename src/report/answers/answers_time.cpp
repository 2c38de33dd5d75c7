// Answers questions 1 and 10: where the time went, how long a step takes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/answers/answers.h"
#include "report/answers/answers_phases.h"
#include "report/draw/figure_text.h"
#include "report/run/analysis_series.h"
#include "report/run/analysis_steps.h"

namespace lockstep {

namespace {

std::string state_text(const Run& run) {
  const RunHistory& h = run.history;
  const int64_t done = h.steps.empty() ? 0 : h.steps.back().step;
  if (h.attempts.empty()) return "It did not begin.";
  const std::string steps =
      fmt::format("{} of {} steps", with_commas(done),
                  h.total_steps > 0 ? with_commas(h.total_steps) : "an unknown number of");
  if (!h.ended()) {
    return run.facts.failed() ? fmt::format("It failed after {}.", steps)
                              : fmt::format("It has no end yet: {} are done.", steps);
  }
  const std::string& reason = h.attempts.back().end;
  if (reason == "signal") return fmt::format("It was stopped by a signal after {}.", steps);
  if (reason == "minutes") return fmt::format("Its time limit ended it after {}.", steps);
  if (reason == "patience") {
    return fmt::format("It ended after {}, as evaluations did not improve any more.", steps);
  }
  return fmt::format("It took all its {} steps.", with_commas(done));
}

}  // namespace

PlotSeries series_of(const std::string& name, const RunHistory& history,
                     const std::function<double(const StepRow&)>& value) {
  constexpr std::size_t kMost = 400;
  std::vector<Point> points;
  points.reserve(history.steps.size());
  for (const StepRow& row : history.steps) {
    points.push_back({static_cast<double>(row.step), value(row)});
  }
  PlotSeries out{.name = name, .points = {}};
  for (const Point& p : binned(points, kMost)) out.points.push_back({p.x, p.y});
  return out;
}

PlotSeries series_of(const std::string& name, const RunHistory& history, double StepRow::*field,
                     double scale) {
  return series_of(name, history, [=](const StepRow& row) { return row.*field * scale; });
}

Answer answer_duration(const Run& run, Findings& findings) {
  const RunHistory& h = run.history;
  Answer out{.id = "duration", .question = "How long did it take, and where did the time go?"};
  const double wall = h.wall_seconds();
  out.facts["wall_seconds"] = wall;
  out.facts["attempts"] = h.attempts.size();
  out.facts["steps"] = h.steps.empty() ? 0 : h.steps.back().step;
  out.facts["total_steps"] = h.total_steps;
  out.verdict = h.attempts.empty() ? state_text(run)
                                   : fmt::format("{}. {}", short_duration(wall), state_text(run));
  if (wall <= 0) return out;
  double training = 0, begin = 0;
  const MeasuredSteps measured = run.times ? measured_steps(*run.times) : MeasuredSteps{};
  for (const TimePart& part : time_parts(h, measured)) {
    out.facts["parts"][part.name] = part.seconds;
    const std::string value = fmt::format(
        "{} ({})",
        part.seconds < 60 ? fmt::format("{:.1f} s", part.seconds) : short_duration(part.seconds),
        percent(part.seconds / wall));
    out.bars.push_back({part.name, value, part.meaning, begin, part.seconds});
    begin += part.seconds;
    const bool computing = part.name == "compute" || part.name == "forward" ||
                           part.name == "backward" || part.name == "optimizer";
    if (computing) training += part.seconds;
    if (part.name == "data" && part.seconds > 0.1 * wall) {
      findings.push_back({"data_bound", fmt::format("{} of the time waits for data",
                                                    percent(part.seconds / wall))});
    }
    if (part.name == "evaluations" && part.seconds > 0.2 * wall) {
      findings.push_back({"long_evaluations", fmt::format("{} of the time are evaluations",
                                                          percent(part.seconds / wall))});
    }
  }
  out.verdict += fmt::format(" {} of it was computing.", percent(training / wall));
  if (!h.ended())
    findings.push_back({run.facts.failed() ? "failed" : "unfinished", state_text(run)});
  if (h.ended() && h.attempts.back().end == "signal") {
    findings.push_back({"stopped", state_text(run)});
  }
  out.method =
      "Times are those of rank 0, summed over its lines in metrics.jsonl; the whole is from the "
      "first line to the newest, so the launcher's own start is not in it.";
  if (run.times) {
    add_hidden_bar(*run.times, out);
    out.method += " Phases of steps are from times/, of the steps that count.";
  } else {
    out.not_measured.push_back(
        {"forward, backward and optimizer apart, and communication hidden behind them",
         "the run has no times/: it was recorded without per-step accounting",
         "train with this version, which writes them"});
  }
  return out;
}

namespace {

// Adds what slow steps cost, by their causes, and the slowest ones.
void add_slow_steps(const RunHistory& h, const Outliers& slow, Answer& out, Findings& findings) {
  double lost = 0;
  TextTable causes{{"cause", "steps", "time beyond the median"}, {}, "lrr"};
  for (const auto& cause : slow.causes) {
    lost += cause.seconds;
    causes.rows.push_back({cause.cause, with_commas(static_cast<int64_t>(cause.steps)),
                           fmt::format("{:.1f} s", cause.seconds)});
    out.facts["causes"][cause.cause] = {{"steps", cause.steps}, {"seconds", cause.seconds}};
  }
  out.evidence.push_back(fmt::format(
      "{} steps took longer than {} and cost {:.1f} s beyond the median in all. By what their "
      "own figures show:",
      with_commas(static_cast<int64_t>(slow.steps.size())), milliseconds(slow.limit), lost));
  out.tables.push_back(causes);
  std::vector<SlowStep> worst = slow.steps;
  std::sort(worst.begin(), worst.end(),
            [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  worst.resize(std::min<std::size_t>(worst.size(), 5));
  TextTable table{{"slowest steps", "took", "cause"}, {}, "rrl"};
  for (const SlowStep& s : worst) {
    table.rows.push_back({with_commas(s.step), milliseconds(s.seconds), s.cause});
  }
  out.tables.push_back(table);
  if (lost > 0.1 * h.wall_seconds()) {
    findings.push_back({"uneven_steps", fmt::format("slow steps cost {} of the time",
                                                    percent(lost / h.wall_seconds()))});
  }
}

Figure step_time_figure(const RunHistory& h) {
  Figure figure{.name = "step-time",
                .title = "Time of a step",
                .caption = "Means of neighbouring steps where there are more than 400."};
  PlotPanel panel{.x = {.title = "step", .whole = true}, .y = {.title = "seconds", .from = 0.0}};
  panel.series = {series_of("step", h, &StepRow::seconds),
                  series_of("compute", h, &StepRow::compute), series_of("wait", h, &StepRow::wait),
                  series_of("data", h, &StepRow::data)};
  figure.panels.push_back(panel);
  return figure;
}

}  // namespace

Answer answer_step_time(const Run& run, Findings& findings) {
  const RunHistory& h = run.history;
  Answer out{.id = "step_time", .question = "How long is a step?"};
  if (h.steps.empty()) {
    out.verdict = "No step was recorded.";
    return out;
  }
  const StepDurations t = step_durations(h);
  Outliers slow = find_outliers(h);
  if (run.times) refine_causes(run.facts.folder / "times", *run.times, slow);
  out.verdict = fmt::format("{} on average: median {}, 95 % of them take {} or less.",
                            milliseconds(t.mean), milliseconds(t.median), milliseconds(t.p95));
  out.evidence.push_back(
      fmt::format("Of the mean step {} are computing, {} waiting for others and the network, {} "
                  "waiting for data.",
                  milliseconds(t.compute), milliseconds(t.wait), milliseconds(t.data)));
  if (run.times) out.evidence.push_back(mean_step_text(*run.times));
  out.facts = {{"count", t.count},
               {"mean_seconds", t.mean},
               {"median_seconds", t.median},
               {"p95_seconds", t.p95},
               {"p99_seconds", t.p99},
               {"shortest_seconds", t.shortest},
               {"longest_seconds", t.longest},
               {"outlier_limit_seconds", slow.limit},
               {"outliers", slow.steps.size()}};
  out.tables.push_back({{"steps", "mean", "shortest", "median", "95 %", "99 %", "longest"},
                        {{with_commas(static_cast<int64_t>(t.count)), milliseconds(t.mean),
                          milliseconds(t.shortest), milliseconds(t.median), milliseconds(t.p95),
                          milliseconds(t.p99), milliseconds(t.longest)}},
                        "rrrrrrr"});
  if (slow.steps.empty()) {
    out.evidence.push_back(fmt::format("No step took longer than {}.", milliseconds(slow.limit)));
  } else {
    add_slow_steps(h, slow, out, findings);
  }
  out.figures.push_back(step_time_figure(h));
  out.method = fmt::format(
      "Without the first {} steps of each attempt, which warm up. Outliers lie above the median by "
      "6 robust deviations (1.4826 times the median absolute deviation) and a fifth of it.{}",
      kWarmUpSteps,
      run.times ? " Their cause is the phase of any rank that grew by more than half of what the "
                  "step took too long, against that rank's median."
                : "");
  return out;
}

}  // namespace lockstep
