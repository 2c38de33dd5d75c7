#include "report/run_reader.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/statistics.h"
#include "config/source.h"
#include "report/read_json.h"

namespace lockstep {

namespace {

struct Step {
  int64_t epoch = 0;
  double seconds = 0, wait = 0, data = 0, items = 0, loss = 0;
};

// The lines of metrics.jsonl, gathered.
struct Lines {
  std::map<int64_t, Step> steps;  // by number: the later of two counts
  std::map<int64_t, EvaluationFigures> evaluations;
  int64_t total_steps = 0;
  std::string end;  // its reason; empty: it did not end after the newest start
  double attempt_began = 0, newest = 0, wall = 0;  // seconds
};

void begin_attempt(const ReadJson& line, Lines& out) {
  out.wall += out.newest - out.attempt_began;
  out.attempt_began = out.newest = number(line, "time");
  out.total_steps = whole(line, "total_steps");
  out.end.clear();
  // What came after the checkpoint that it goes on from will be done again.
  const int64_t first = whole(line, "first_step");
  out.evaluations.erase(out.evaluations.lower_bound(first), out.evaluations.end());
  out.steps.erase(out.steps.lower_bound(first), out.steps.end());
}

void add_evaluation(const ReadJson& line, Lines& out) {
  EvaluationFigures figures{.step = whole(line, "step"), .metrics = {}, .improved = {}};
  constexpr std::string_view kPrefix = "eval/";
  for (const auto& [key, value] : line.items()) {
    if (key.starts_with(kPrefix) && value.is_number()) {
      figures.metrics[key.substr(kPrefix.size())] = value.get<double>();
    }
  }
  if (auto improved = line.find("improved"); improved != line.end() && improved->is_array()) {
    for (const ReadJson& name : *improved) figures.improved.push_back(name.get<std::string>());
  }
  out.evaluations[figures.step] = std::move(figures);
}

void add_line(const ReadJson& line, Lines& out) {
  const std::string event = line.value("event", "");
  if (event == "start" || event == "resume") return begin_attempt(line, out);
  out.newest = std::max(out.newest, number(line, "time"));
  if (event == "step") {
    out.steps[whole(line, "step")] = {.epoch = whole(line, "epoch"),
                                      .seconds = number(line, "time/step_seconds"),
                                      .wait = number(line, "time/wait_seconds"),
                                      .data = number(line, "time/data_seconds"),
                                      .items = number(line, "batch/items"),
                                      .loss = number(line, "train/loss")};
  } else if (event == "meeting" && !out.steps.empty()) {  // training stood still for it
    Step& step = out.steps.rbegin()->second;
    step.seconds += number(line, "time/wait_seconds");
    step.wait += number(line, "time/wait_seconds");
  } else if (event == "evaluation") {
    add_evaluation(line, out);
  } else if (event == "end") {
    out.end = line.value("reason", "");
  }
}

Lines read_lines_of(const fs::path& path) {
  Lines out;
  if (!fs::exists(path)) return out;
  std::string broken;  // where; an error unless it is the last line, cut short by a kill
  for_each_line(path, [&](std::string_view text, int64_t number) {
    if (!broken.empty()) throw DataError("{}: is no line of metrics", broken);
    ReadJson line = ReadJson::parse(text, nullptr, false);
    if (line.is_object()) {
      add_line(line, out);
    } else {
      broken = fmt::format("{}:{}", path.string(), number);
    }
  });
  out.wall += out.newest - out.attempt_began;
  return out;
}

void add_epochs(const Lines& lines, RunFigures& out) {
  double training = 0;
  for (const auto& [number, step] : lines.steps) {
    if (out.epochs.empty() || out.epochs.back().epoch != step.epoch) {
      if (!out.epochs.empty()) out.epochs.back().complete = true;
      out.epochs.push_back({.epoch = step.epoch, .evaluation = {}});
    }
    EpochFigures& epoch = out.epochs.back();
    training += step.seconds;
    epoch.steps += 1;
    epoch.seconds += step.seconds;
    epoch.wait_seconds += step.wait;
    epoch.data_seconds += step.data;
    epoch.items += step.items;
    epoch.loss += step.loss * step.items;
    epoch.training_seconds = training;
  }
  for (EpochFigures& epoch : out.epochs) epoch.loss /= std::max(1.0, epoch.items);
  if (out.epochs.empty()) return;
  out.training_seconds = training;
  // The last one is complete when the run ended by epochs, or when it has as many steps as others.
  bool as_long = out.epochs.size() > 1 && out.epochs.back().steps >= out.epochs.front().steps;
  if (lines.end == "epochs" || as_long) out.epochs.back().complete = true;
}

// Steps of a complete epoch, if one is known.
std::optional<double> steps_of_epoch(const RunFigures& run) {
  for (const EpochFigures& epoch : run.epochs) {
    if (epoch.complete) return static_cast<double>(epoch.steps);
  }
  return std::nullopt;
}

void add_evaluations(const Lines& lines, RunFigures& out) {
  const std::optional<double> steps = steps_of_epoch(out);
  auto step = lines.steps.begin();
  double training = 0;
  for (const auto& [number, found] : lines.evaluations) {
    for (; step != lines.steps.end() && step->first <= number; ++step) {
      training += step->second.seconds;
    }
    EvaluationFigures figures = found;
    figures.training_seconds = training;
    if (steps) figures.epoch = static_cast<double>(number) / *steps;
    // That of the epoch in which its step lies.
    auto at = lines.steps.find(number);
    for (EpochFigures& epoch : out.epochs) {
      if (at != lines.steps.end() && epoch.epoch == at->second.epoch) {
        epoch.evaluation = figures.metrics;
      }
    }
    out.evaluations.push_back(std::move(figures));
  }
}

void add_metric(RunFigures& out) {
  if (out.evaluations.empty()) return;
  const EvaluationFigures& newest = out.evaluations.back();
  out.last_of = newest.metrics;
  // "[\"acc1\", \"loss\"]": the first name is what the run is judged by.
  const std::string names = out.config["evaluation.metrics"];
  const std::size_t from = names.find_first_of("'\""), to = names.find_first_of("'\"", from + 1);
  if (from != std::string::npos && to != std::string::npos) {
    out.metric = names.substr(from + 1, to - from - 1);
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

void add_speed(const Lines& lines, RunFigures& out) {
  std::vector<Step> steady;
  const bool epochs = out.epochs.size() > 1 && out.epochs[1].complete;
  const auto first =
      epochs ? static_cast<std::size_t>(out.epochs.front().steps) : (lines.steps.size() + 9) / 10;
  std::size_t index = 0;
  for (const auto& [number, step] : lines.steps) {
    if (index++ >= first) steady.push_back(step);
  }
  if (steady.empty()) return;
  double seconds = 0, wait = 0, items = 0;
  std::vector<double> times;
  for (const Step& step : steady) {
    seconds += step.seconds;
    wait += step.wait;
    items += step.items;
    times.push_back(step.seconds);
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

void add_loss(const Lines& lines, RunFigures& out) {
  for (const EpochFigures& epoch : out.epochs) {
    if (epoch.complete) out.loss = epoch.loss;
  }
  if (out.loss || lines.steps.empty()) return;
  const std::size_t newest = (lines.steps.size() + 9) / 10;
  double sum = 0, items = 0;
  auto step = lines.steps.rbegin();
  for (std::size_t i = 0; i < newest; ++i, ++step) {
    sum += step->second.loss * step->second.items;
    items += step->second.items;
  }
  if (items > 0) out.loss = sum / items;
}

// Ranks and hosts, as rank 0 last wrote them; true when it wrote that the run failed.
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
  const Lines lines = read_lines_of(folder / "metrics.jsonl");
  out.state = lines.end.empty() ? "unfinished" : lines.end == "signal" ? "stopped" : "finished";
  out.total_steps = lines.total_steps;
  out.steps = lines.steps.empty() ? 0 : lines.steps.rbegin()->first;
  if (lines.wall > 0) out.wall_seconds = lines.wall;
  const bool failed = add_live(folder / "live.json", out);
  if (failed && lines.end.empty()) out.state = "failed";
  add_epochs(lines, out);
  add_evaluations(lines, out);
  add_metric(out);
  add_speed(lines, out);
  add_loss(lines, out);
  return out;
}

}  // namespace lockstep
