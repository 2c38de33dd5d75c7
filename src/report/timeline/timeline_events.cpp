// Puts the run as a whole on a timeline: attempts, evaluations, checkpoints, what the launcher saw,
// warnings, slow steps, curves.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>

#include "base/text.h"
#include "report/run/analysis_steps.h"
#include "report/timeline/timeline_parts.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

enum RunThread : int {
  kAttempts = 1,
  kEvaluations,
  kCheckpoints,
  kLauncher,
  kWarnings,
  kSlowSteps
};
constexpr std::size_t kMostSlowSteps = 500, kMostPoints = 1000, kMostOverflows = 1000;

// Returns the time range of the wanted steps; the whole run where none were named.
TimeRange range_of(const TimelineContext& context) {
  TimeRange out{.begin = 0, .end = std::numeric_limits<double>::max()};
  if (!context.options.steps) return out;
  bool any = false;
  for (const StepRow& row : context.run.history.steps) {
    if (!context.wants(row.step)) continue;
    if (!any) out.begin = row.time - row.seconds;
    out.end = row.time;
    any = true;
  }
  return out;
}

class RunRows {
 public:
  explicit RunRows(TimelineContext& context)
      : context_(context), history_(context.run.history), range_(range_of(context)) {}

  void add() {
    add_attempts();
    add_evaluations();
    add_checkpoints();
    add_launcher();
    add_warnings();
    add_slow_steps();
    add_curves();
    context_.events.name_process(kRunProcess, "run", 0);
    for (const auto& [thread, name] :
         std::initializer_list<std::pair<int, const char*>>{{kAttempts, "attempts"},
                                                            {kEvaluations, "evaluations"},
                                                            {kCheckpoints, "checkpoints"},
                                                            {kLauncher, "launcher"},
                                                            {kWarnings, "warnings"},
                                                            {kSlowSteps, "slow steps"}}) {
      if (used_[static_cast<std::size_t>(thread)]) {
        context_.events.name_thread({kRunProcess, thread}, name, thread);
      }
    }
  }

 private:
  void slice(RunThread thread, const std::string& name, double begin, double end,
             const Json& args) {
    if (end < range_.begin || begin > range_.end) return;
    begin = std::max(begin, range_.begin);
    end = std::min(end, range_.end);
    rows_[thread].follow(begin, end);
    used_[thread] = true;
    context_.events.slice({kRunProcess, thread}, name, begin, end, args);
  }
  void instant(RunThread thread, const std::string& name, double time, bool across_all,
               const Json& args) {
    if (!range_.has(time)) return;
    used_[thread] = true;
    context_.events.instant({kRunProcess, thread}, name, time, across_all, args);
  }

  void add_attempts() {
    for (std::size_t i = 0; i < history_.attempts.size(); ++i) {
      const AttemptRow& a = history_.attempts[i];
      slice(kAttempts, fmt::format("attempt {}", i + 1), a.began, a.ended,
            {{"first_step", a.first_step},
             {"last_step", a.last_step},
             {"end", a.end.empty() ? "none" : a.end}});
    }
  }

  void add_evaluations() {
    for (const EvaluationRow& e : history_.evaluations) {
      Json args = {{"step", e.step}};
      for (const auto& [name, value] : e.metrics) {
        args[name] = value;
        if (range_.has(e.time)) {
          context_.events.counter(kRunProcess, "eval/" + name, e.time, value);
        }
      }
      slice(kEvaluations, "evaluation", e.time - e.seconds, e.time, args);
    }
  }

  void add_checkpoints() {
    for (const CheckpointRow& c : history_.checkpoints) {
      slice(kCheckpoints, "checkpoint", c.time - c.write_seconds, c.time,
            {{"step", c.step}, {"name", c.name}, {"bytes", c.bytes}});
    }
  }

  void add_launcher() {
    for (const nlohmann::json& line : context_.run.facts.launch) {
      const std::string event = line.value("event", "");
      const bool grave = event == "failure" || event == "host_lost" || event == "restart" ||
                         event == "reclaimed" || event == "signal";
      instant(kLauncher, event, line.value("time", 0.0), grave, {{"text", line.value("text", "")}});
    }
    const nlohmann::json& live = context_.run.facts.live;
    if (live.is_object() && live.value("state", "") == "failed") {
      instant(kLauncher, "failed", live.value("time", 0.0), true,
              {{"text", live.value("reason", "")}});
    }
  }

  // Lines of rank 0's log begin with its local time.
  void add_warnings() {
    for (const std::string& line : context_.run.facts.warnings) {
      std::tm parts{};
      const char* rest = strptime(line.c_str(), "%Y-%m-%d %H:%M:%S", &parts);
      if (rest == nullptr || *rest != '.') continue;
      parts.tm_isdst = -1;
      const double time = static_cast<double>(std::mktime(&parts)) + std::strtod(rest, nullptr);
      constexpr double kAround = 3600;  // if further away, it was written in another time zone
      const bool of_run = !history_.attempts.empty() &&
                          time > history_.attempts.front().began - kAround &&
                          time < history_.attempts.back().ended + kAround;
      const std::size_t text = line.find("warning: ");
      if (!of_run || text == std::string::npos) continue;
      instant(kWarnings, line.substr(text + 9, 120), time, false, {{"line", line}});
    }
    double skipped = 0;
    std::size_t shown = 0;
    for (const StepRow& row : history_.steps) {
      if (row.skipped > skipped && ++shown <= kMostOverflows) {
        instant(kWarnings, "update left out: gradients overflowed", row.time, false,
                {{"step", row.step}});
      }
      skipped = row.skipped;
    }
  }

  void add_slow_steps() {
    Outliers slow = find_outliers(history_);
    if (context_.run.times) {
      refine_causes(context_.run.facts.folder / "times", *context_.run.times, slow);
    }
    std::vector<SlowStep> worst;
    for (const SlowStep& step : slow.steps) {
      if (context_.wants(step.step)) worst.push_back(step);
    }
    if (worst.size() > kMostSlowSteps) {
      context_.notes.push_back(fmt::format("Slow steps: the worst {} of {}.", kMostSlowSteps,
                                           with_commas(static_cast<int64_t>(worst.size()))));
      std::sort(worst.begin(), worst.end(),
                [](const SlowStep& a, const SlowStep& b) { return a.excess > b.excess; });
      worst.resize(kMostSlowSteps);
      std::sort(worst.begin(), worst.end(),
                [](const SlowStep& a, const SlowStep& b) { return a.step < b.step; });
    }
    auto row = history_.steps.begin();
    for (const SlowStep& step : worst) {
      while (row->step < step.step) ++row;
      slice(kSlowSteps, fmt::format("step {}: {}", step.step, step.cause), row->time - row->seconds,
            row->time, {{"seconds", step.seconds}, {"beyond_the_median", step.excess}});
    }
  }

  // Adds a curve of at most kMostPoints means.
  void add_curve(const std::string& name, const std::function<double(const StepRow&)>& value) {
    std::vector<const StepRow*> rows;
    for (const StepRow& row : history_.steps) {
      if (context_.wants(row.step)) rows.push_back(&row);
    }
    const std::size_t each = (rows.size() + kMostPoints - 1) / kMostPoints;
    for (std::size_t from = 0; from < rows.size(); from += each) {
      double sum = 0, count = 0;
      for (std::size_t i = from; i < std::min(rows.size(), from + each); ++i) {
        const double one = value(*rows[i]);
        if (!std::isfinite(one)) continue;
        sum += one;
        count += 1;
      }
      if (count > 0) context_.events.counter(kRunProcess, name, rows[from]->time, sum / count);
    }
  }

  void add_curves() {
    add_curve("train/loss", [](const StepRow& row) { return row.loss; });
    add_curve("train/learning_rate", [](const StepRow& row) { return row.lr; });
    add_curve("speed/" + context_.run.facts.unit() + " per second", [](const StepRow& row) {
      return row.seconds > 0 ? row.targets / row.seconds : std::nan("");
    });
    add_curve("rank 0 waiting, share of the step", [](const StepRow& row) {
      return row.seconds > 0 ? row.wait / row.seconds : std::nan("");
    });
  }

  TimelineContext& context_;
  const RunHistory& history_;
  TimeRange range_;
  std::array<TraceRow, kSlowSteps + 1> rows_;
  std::array<bool, kSlowSteps + 1> used_{};
};

}  // namespace

void add_run_events(TimelineContext& context) { RunRows(context).add(); }

}  // namespace lockstep
