#include "report/run/run_reader.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "base/error.h"
#include "base/statistics.h"
#include "config/source.h"
#include "report/run/read_json.h"
#include "report/run/run_history.h"

namespace lockstep {

namespace {

// A step's time includes the meeting after it, for which training stood still.
double seconds_of(const StepRow& step) { return step.seconds + step.meeting_seconds; }
double wait_of(const StepRow& step) { return step.wait + step.meeting_seconds; }
std::string end_of(const RunHistory& history) {  // reason; empty: it continues, or broke off
  return history.attempts.empty() ? "" : history.attempts.back().end;
}
double loss_of(const StepRow& step) { return std::isnan(step.loss) ? 0 : step.loss * step.items; }

void add_epochs(const RunHistory& history, RunFigures& out) {
  double training = 0;
  for (const StepRow& step : history.steps) {
    if (out.epochs.empty() || out.epochs.back().epoch != step.epoch) {
      if (!out.epochs.empty()) out.epochs.back().complete = true;
      out.epochs.push_back({.epoch = step.epoch, .evaluation = {}});
    }
    EpochFigures& epoch = out.epochs.back();
    training += seconds_of(step);
    epoch.steps += 1;
    epoch.seconds += seconds_of(step);
    epoch.wait_seconds += wait_of(step);
    epoch.data_seconds += step.data;
    epoch.items += step.items;
    epoch.loss += loss_of(step);
    epoch.training_seconds = training;
  }
  for (EpochFigures& epoch : out.epochs) epoch.loss /= std::max(1.0, epoch.items);
  if (out.epochs.empty()) return;
  out.training_seconds = training;
  // The last epoch is complete when the run ended by epochs, or when it has as many steps as the
  // first.
  bool as_long = out.epochs.size() > 1 && out.epochs.back().steps >= out.epochs.front().steps;
  if (end_of(history) == "epochs" || as_long) out.epochs.back().complete = true;
}

// Returns the number of steps of a complete epoch, if there is one.
std::optional<double> steps_of_epoch(const RunFigures& run) {
  for (const EpochFigures& epoch : run.epochs) {
    if (epoch.complete) return static_cast<double>(epoch.steps);
  }
  return std::nullopt;
}

void add_evaluations(const RunHistory& history, RunFigures& out) {
  const std::optional<double> steps = steps_of_epoch(out);
  auto step = history.steps.begin();
  double training = 0;
  for (const EvaluationRow& found : history.evaluations) {
    for (; step != history.steps.end() && step->step <= found.step; ++step) {
      training += seconds_of(*step);
    }
    EvaluationFigures figures{.step = found.step,
                              .training_seconds = training,
                              .metrics = found.metrics,
                              .improved = found.improved};
    if (steps) figures.epoch = static_cast<double>(found.step) / *steps;
    // The evaluation belongs to the epoch of its step.
    const bool known = step != history.steps.begin() && std::prev(step)->step == found.step;
    for (EpochFigures& epoch : out.epochs) {
      if (known && epoch.epoch == std::prev(step)->epoch) epoch.evaluation = figures.metrics;
    }
    out.evaluations.push_back(std::move(figures));
  }
}

void add_metric(RunFigures& out) {
  if (out.evaluations.empty()) return;
  const EvaluationFigures& newest = out.evaluations.back();
  out.last_of = newest.metrics;
  // From "[\"acc1\", \"loss\"]" takes the first name, by which the run is judged, and the others.
  const std::string names = out.config["evaluation.metrics"];
  for (std::size_t from = names.find_first_of("'\""); from != std::string::npos;) {
    const std::size_t to = names.find_first_of("'\"", from + 1);
    if (to == std::string::npos) break;
    const std::string name = names.substr(from + 1, to - from - 1);
    if (out.metric.empty()) {
      out.metric = name;
    } else {
      out.further.push_back(name);
    }
    from = names.find_first_of("'\"", to + 1);
  }
  auto value = newest.metrics.find(out.metric);
  if (value == newest.metrics.end()) return;
  out.last = value->second;
  for (const EvaluationFigures& one : out.evaluations) {
    auto is_metric = [&](const std::string& name) { return name == out.metric; };
    bool better = std::any_of(one.improved.begin(), one.improved.end(), is_metric);
    if (better && one.metrics.contains(out.metric)) out.best = one.metrics.at(out.metric);
  }
}

void add_speed(const RunHistory& history, RunFigures& out) {
  const bool epochs = out.epochs.size() > 1 && out.epochs[1].complete;
  const auto first =
      epochs ? static_cast<std::size_t>(out.epochs.front().steps) : (history.steps.size() + 9) / 10;
  if (history.steps.size() <= first) return;
  double seconds = 0, wait = 0, items = 0;
  std::vector<double> times;
  for (std::size_t i = first; i < history.steps.size(); ++i) {
    const StepRow& step = history.steps[i];
    seconds += seconds_of(step);
    wait += wait_of(step);
    items += step.items;
    times.push_back(seconds_of(step));
  }
  out.step_seconds = median(std::move(times));
  if (seconds > 0) {
    out.items_per_second = items / seconds;
    out.wait_share = wait / seconds;
  }
  double count = 0, sum = 0, waited = 0;
  for (std::size_t i = epochs ? 1 : 0; i < out.epochs.size(); ++i) {
    if (!out.epochs[i].complete) continue;
    count += 1;
    sum += out.epochs[i].seconds;
    waited += out.epochs[i].wait_seconds;
  }
  if (count == 0) return;
  out.epoch_seconds = sum / count;
  out.epoch_wait_seconds = waited / count;
}

void add_loss(const RunHistory& history, RunFigures& out) {
  for (const EpochFigures& epoch : out.epochs) {
    if (epoch.complete) out.loss = epoch.loss;
  }
  if (out.loss || history.steps.empty()) return;
  const std::size_t newest = (history.steps.size() + 9) / 10;
  double sum = 0, items = 0;
  auto step = history.steps.rbegin();
  for (std::size_t i = 0; i < newest; ++i, ++step) {
    sum += loss_of(*step);
    items += step->items;
  }
  if (items > 0) out.loss = sum / items;
}

// Adds ranks and hosts, as rank 0 last wrote them; returns true when it wrote that the run failed.
bool add_live(const fs::path& path, RunFigures& out) {
  if (!fs::exists(path)) return false;
  ReadJson live = ReadJson::parse(read_file(path), nullptr, false);
  if (!live.is_object()) return false;
  if (whole(live, "size") > 0) out.ranks = static_cast<int>(whole(live, "size"));
  if (whole(live, "threads") > 0) out.threads = static_cast<int>(whole(live, "threads"));
  std::set<std::string> hosts;
  for (const ReadJson& rank : live.value("ranks", ReadJson::array())) {
    std::string host = rank.value("host", "");
    if (!host.empty()) hosts.insert(host);
  }
  if (!hosts.empty()) out.hosts = static_cast<int>(hosts.size());
  return live.value("state", "") == "failed";
}

void add_setup(const fs::path& path, RunFigures& out) {
  ConfigSource source = ConfigSource::from_file(path);
  for (const WrittenEntry& entry : source.take_below("")) out.config[entry.key] = entry.value.text;
}

}  // namespace

RunFigures read_run(const fs::path& folder) {
  RunFigures out;
  out.folder = folder;
  if (!fs::exists(folder / "config.toml")) {
    ConfigError error("{}: holds no run (no config.toml)", folder.string());
    error.set_advice("the folder that `lockstep train` or `lockstep sweep` wrote");
    throw error;
  }
  add_setup(folder / "config.toml", out);
  const RunHistory history = read_history(folder / "metrics.jsonl");
  const std::string end = end_of(history);
  out.state = end.empty() ? "unfinished" : end == "signal" ? "stopped" : "finished";
  out.total_steps = history.total_steps;
  out.step_size = history.step_size;
  out.steps = history.steps.empty() ? 0 : history.steps.back().step;
  double wall = 0;  // without the time between attempts
  for (const AttemptRow& attempt : history.attempts) wall += attempt.ended - attempt.began;
  if (wall > 0) out.wall_seconds = wall;
  const bool failed = add_live(folder / "live.json", out);
  if (failed && end.empty()) out.state = "failed";
  add_epochs(history, out);
  add_evaluations(history, out);
  add_metric(out);
  add_speed(history, out);
  add_loss(history, out);
  return out;
}

}  // namespace lockstep
