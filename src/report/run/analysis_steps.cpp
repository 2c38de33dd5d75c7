#include "report/run/analysis_steps.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/statistics.h"

namespace lockstep {

namespace {

bool warms_up(const StepRow& row, const RunHistory& history) {
  const AttemptRow& attempt = history.attempts[static_cast<std::size_t>(row.attempt)];
  return row.step < attempt.first_step + kWarmUpSteps;
}

using Rows = std::vector<const StepRow*>;  // pointers, as there may be a million large rows

Rows steady_steps(const RunHistory& history) {
  Rows all, out;
  for (const StepRow& row : history.steps) {
    all.push_back(&row);
    if (!warms_up(row, history)) out.push_back(&row);
  }
  return out.empty() ? all : out;
}

std::vector<double> values_of(const Rows& steps, double StepRow::*field) {
  std::vector<double> out;
  out.reserve(steps.size());
  for (const StepRow* row : steps) out.push_back(row->*field);
  return out;
}

// Sums, over attempts, the time from the line "start" to the begin of the first step.
double start_seconds(const RunHistory& history) {
  double out = 0;
  std::set<int> seen;
  for (const StepRow& row : history.steps) {
    if (!seen.insert(row.attempt).second) continue;
    const AttemptRow& attempt = history.attempts[static_cast<std::size_t>(row.attempt)];
    if (row.step == attempt.first_step) {
      out += std::max(0.0, row.time - row.seconds - attempt.began);
    }
  }
  return out;
}

constexpr const char* kData = "waiting for data";
constexpr const char* kOthers = "waiting for other ranks or the network";
constexpr const char* kComputing = "computing took longer";

// Returns whether a checkpoint was written during the step, beside the training.
bool beside_writing(const StepRow& row, const RunHistory& history) {
  return std::any_of(
      history.checkpoints.begin(), history.checkpoints.end(), [&](const CheckpointRow& c) {
        return c.time - c.write_seconds < row.time && row.time - row.seconds < c.time;
      });
}

std::string cause_of(const StepRow& row, const StepDurations& usual, double usual_targets,
                     const RunHistory& history, const std::set<int64_t>& interrupted) {
  const double excess = row.seconds - usual.median;
  if (warms_up(row, history)) return "first steps of an attempt";
  if (row.meeting_seconds > 0) return "meeting of the groups";
  if (row.data - usual.data > excess / 2) return kData;
  if (row.wait - usual.wait > excess / 2) return kOthers;
  if (interrupted.contains(row.step - 1)) return "right after an evaluation or checkpoint";
  if (beside_writing(row, history)) return "while a checkpoint was written";
  if (usual_targets > 0 && row.targets > 1.1 * usual_targets) return "larger batch";
  return kComputing;
}

}  // namespace

std::vector<TimePart> time_parts(const RunHistory& history, const MeasuredSteps& measured) {
  double compute = 0, wait = 0, data = 0;
  for (const StepRow& row : history.steps) {
    if (measured.covers && measured.covers(row.step)) continue;
    compute += row.compute;
    wait += row.wait;
    data += row.data;
  }
  double between = 0;
  for (std::size_t i = 1; i < history.attempts.size(); ++i) {
    between += std::max(0.0, history.attempts[i].began - history.attempts[i - 1].ended);
  }
  std::vector<TimePart> out = measured.parts;
  if (out.empty()) {
    out = {
        {"compute", "forward, backward, optimizer, and communication hidden behind them", compute},
        {"wait", "for other ranks and the network, after the backward pass", wait},
        {"data", "for the next batch", data}};
  } else {
    out.push_back(
        {"steps without phases", "whose phases were not recorded", compute + wait + data});
  }
  out.insert(
      out.end(),
      {{"evaluations", "loss and metrics on the evaluation split", history.evaluation_seconds},
       {"checkpoints", "writing them", history.checkpoint_seconds},
       {"meetings", "of groups that take local steps", history.meeting_seconds},
       {"start", "from the start of each attempt to its first step", start_seconds(history)},
       {"repeated", "steps done again after a resume", history.repeated_seconds},
       {"interrupted", "between the end of an attempt and the start of the next", between}});
  double known = 0;
  for (const TimePart& part : out) known += part.seconds;
  std::erase_if(out, [](const TimePart& part) { return part.seconds <= 0 && part.name != "wait"; });
  const double rest = history.wall_seconds() - known;
  if (rest > 0) out.push_back({"other", "in none of these: logs, checks, observers", rest});
  return out;
}

StepDurations step_durations(const RunHistory& history) {
  if (history.steps.empty()) return {};
  const Rows steps = steady_steps(history);
  std::vector<double> seconds = values_of(steps, &StepRow::seconds);
  StepDurations out{.count = steps.size(),
                    .mean = mean(seconds),
                    .compute = mean(values_of(steps, &StepRow::compute)),
                    .wait = mean(values_of(steps, &StepRow::wait)),
                    .data = mean(values_of(steps, &StepRow::data))};
  std::sort(seconds.begin(), seconds.end());
  out.median = quantile(seconds, 0.5);
  out.p95 = quantile(seconds, 0.95);
  out.p99 = quantile(seconds, 0.99);
  out.shortest = seconds.front();
  out.longest = seconds.back();
  return out;
}

Outliers find_outliers(const RunHistory& history) {
  Outliers out;
  if (history.steps.empty()) return out;
  const Rows steps = steady_steps(history);
  const std::vector<double> seconds = values_of(steps, &StepRow::seconds);
  StepDurations usual = step_durations(history);
  usual.data = median(values_of(steps, &StepRow::data));
  usual.wait = median(values_of(steps, &StepRow::wait));
  const double usual_targets = median(values_of(steps, &StepRow::targets));
  out.limit = usual.median + std::max(6 * robust_deviation(seconds), 0.2 * usual.median);
  std::set<int64_t> interrupted;
  for (const EvaluationRow& row : history.evaluations) interrupted.insert(row.step);
  for (const CheckpointRow& row : history.checkpoints) interrupted.insert(row.step);
  for (const StepRow& row : history.steps) {
    if (row.seconds <= out.limit) continue;
    out.steps.push_back({.step = row.step,
                         .seconds = row.seconds,
                         .excess = row.seconds - usual.median,
                         .cause = cause_of(row, usual, usual_targets, history, interrupted)});
  }
  add_up_causes(out);
  return out;
}

bool is_general(const std::string& cause) {
  return cause == kData || cause == kOthers || cause == kComputing;
}

void add_up_causes(Outliers& outliers) {
  std::map<std::string, Outliers::Cause> causes;
  for (const SlowStep& slow : outliers.steps) {
    Outliers::Cause& cause = causes[slow.cause];
    cause.cause = slow.cause;
    cause.steps += 1;
    cause.seconds += slow.excess;
  }
  outliers.causes.clear();
  for (auto& [name, cause] : causes) outliers.causes.push_back(cause);
  std::sort(outliers.causes.begin(), outliers.causes.end(),
            [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
}

}  // namespace lockstep
