// Puts steps without spans on a timeline: the phases of each step, or of stretches of steps.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/text.h"
#include "formats/step_times.h"
#include "report/timeline/timeline_parts.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

// Phases in the order of a step; each step or stretch is one slice that contains these.
constexpr std::size_t kPhases = 7;
using Phases = std::array<double, kPhases>;  // seconds
using PhaseNames = std::array<const char*, kPhases>;
constexpr PhaseNames kNames = {"data",     "forward",   "backward", "wait for peers",
                               "exchange", "optimizer", "other"};
constexpr std::size_t kBeforeOptimizer = 5;  // the phases until the exchange ends on all ranks
// The names for metrics.jsonl, which has three phases.
constexpr PhaseNames kRoughNames = {"data", "compute", "wait", "", "", "", ""};
constexpr std::size_t kSlicesOfAStep = 8;
constexpr int64_t kMostCurvePoints = 1000;

double sum_of(const Phases& phases, std::size_t until = kPhases) {
  double out = 0;
  for (std::size_t p = 0; p < until; ++p) out += phases[p];
  return out;
}

Phases shown_phases(const RankTimes& times) {
  RankPhases p;
  p.add(times);
  return {p.data, p.forward, p.backward, p.peers, p.exchange, p.optimizer, p.other};
}

struct TimedStep {
  int64_t step = 0;
  double begin = 0;  // on rank 0
  std::vector<Phases> ranks;
};

// Cuts a slice that is less exact than spans where it overlaps them.
void make_room(const std::vector<TimeRange>& exact, double& begin, double& end) {
  for (const TimeRange& taken : exact) {
    if (end <= taken.begin || begin >= taken.end) continue;
    if (begin < taken.begin) {
      end = taken.begin;
    } else {
      begin = taken.end;
      end = std::max(begin, end);
    }
  }
}

// Collects steps into stretches of `width` and draws them.
class StretchWriter {
 public:
  StretchWriter(TimelineContext& context, const PhaseNames& names, int64_t width, int64_t curve)
      : context_(context), names_(names), width_(width), curve_every_(curve) {}

  void add(const TimedStep& step) {
    if (count_ == width_) flush(step.begin);
    if (count_ == 0) {
      first_ = step.step;
      begin_ = step.begin;
      sums_.assign(step.ranks.size(), {});
    }
    last_ = step.step;
    end_ = step.begin + sum_of(step.ranks.front());
    for (std::size_t r = 0; r < step.ranks.size(); ++r) {
      for (std::size_t p = 0; p < kPhases; ++p) sums_[r][p] += step.ranks[r][p];
    }
    count_ += 1;
  }

  // `next` is when the following step begins; 0: there is none.
  void flush(double next = 0) {
    if (count_ == 0) return;
    if (next > end_ && width_ > 1) end_ = next;  // covers evaluations and checkpoints in between
    for (std::size_t r = 0; r < sums_.size(); ++r) {
      if (context_.options.ranks.has(static_cast<int>(r))) draw(r);
    }
    count_ = 0;
  }

 private:
  void draw(std::size_t rank) {
    const Phases& phases = sums_[rank];
    const double total = sum_of(phases), steps = static_cast<double>(count_);
    if (total <= 0) return;  // the rank is of another group, in local steps
    double begin = begin_, end = end_;
    if (width_ == 1 && rank > 0) {
      // Its begin is not recorded, but all ranks leave the exchange together.
      begin += sum_of(sums_.front(), kBeforeOptimizer) - sum_of(phases, kBeforeOptimizer);
      end = begin + sum_of(phases);
    }
    const double late = std::max(0.0, rows_[rank].end() - begin);  // the begin is computed
    begin += late;
    end += late;
    double at = begin;  // of a phase, which is cut off where exact spans leave no room
    make_room(context_.exact[static_cast<int>(rank)], begin, end);
    rows_[rank].follow(begin, end);
    context_.ranks.insert(static_cast<int>(rank));
    const TracePlace place{process_of_rank(static_cast<int>(rank)), kPhasesThread};
    const std::string name =
        count_ == 1 ? fmt::format("step {}", first_)
                    : fmt::format("steps {} to {}", with_commas(first_), with_commas(last_));
    Json args = Json::object();
    if (count_ > 1) args = {{"steps", count_}, {"mean_step_ms", total / steps * 1e3}};
    context_.events.slice(place, name, begin, end, args);
    for (std::size_t p = 0; p < kPhases; ++p) {
      const double from = std::max(begin, at), until = std::min(end, at + phases[p]);
      at += phases[p];
      if (phases[p] <= 0 || from >= until) continue;
      Json share = Json::object();
      if (count_ > 1) share = {{"mean_ms", phases[p] / steps * 1e3}, {"share", phases[p] / total}};
      context_.events.slice(place, names_[p], from, until, share);
    }
    if (drawn_[rank]++ % curve_every_ == 0) {
      const double waited = names_[3][0] == '\0' ? phases[2] : phases[3] + phases[4];
      context_.events.counter(place.process, "waiting, share of the step", begin, waited / total);
    }
  }

  TimelineContext& context_;
  const PhaseNames& names_;
  int64_t width_, curve_every_;
  int64_t first_ = 0, last_ = 0, count_ = 0;
  double begin_ = 0, end_ = 0;
  std::vector<Phases> sums_;
  std::map<std::size_t, TraceRow> rows_;
  std::map<std::size_t, int64_t> drawn_;
};

// Returns how many steps one slice stands for, so that there are at most options.most_events.
int64_t width_for(int64_t steps, std::size_t ranks, const TimelineOptions& options) {
  const double events = static_cast<double>(steps) * static_cast<double>(ranks * kSlicesOfAStep);
  return std::max<int64_t>(
      1, static_cast<int64_t>(events / static_cast<double>(options.most_events) + 0.999999));
}

void note_width(TimelineContext& context, int64_t width, int64_t steps) {
  if (width == 1) return;
  context.notes.push_back(fmt::format(
      "{} steps are summarised: a slice is {} steps, the phases in it are added up one behind the "
      "other. Their detail: --steps A-B.",
      with_commas(steps), with_commas(width)));
}

int64_t wanted_steps(const StepTimesExtent& extent, const TimelineOptions& options) {
  if (!options.steps) return extent.steps;
  const int64_t first = std::max(extent.first, options.steps->first);
  const int64_t last = std::min(extent.last, options.steps->second);
  return std::max<int64_t>(0, last - first + 1);
}

void add_timed_steps(TimelineContext& context, const std::vector<fs::path>& files) {
  int64_t steps = 0;
  std::size_t ranks = 1;
  for (const fs::path& file : files) {
    const auto extent = step_times_extent(file);
    if (!extent) continue;
    steps += wanted_steps(*extent, context.options);
    ranks = std::max(ranks, static_cast<std::size_t>(extent->ranks));
  }
  const int64_t width = width_for(steps, ranks, context.options);
  note_width(context, width, steps);
  if (width == 1 && ranks > 1) {
    context.notes.push_back(
        "Of steps without spans only rank 0's begin is known: those of other ranks are placed so "
        "that all come out of the exchange together.");
  }
  StretchWriter writer(context, kNames, width, 1 + steps / width / kMostCurvePoints);
  TimedStep timed;
  for (const fs::path& file : files) {
    read_step_times(file, [&](const StepTimes& step) {
      if (!context.wants(step.step)) return;
      if (context.has_spans(step.step, step.begin)) return writer.flush(step.begin);
      timed.step = step.step;
      timed.begin = step.begin;
      timed.ranks.clear();
      for (const RankTimes& rank : step.ranks) timed.ranks.push_back(shown_phases(rank));
      writer.add(timed);
    });
    writer.flush();
  }
}

void add_recorded_steps(TimelineContext& context) {
  const RunHistory& history = context.run.history;
  int64_t steps = 0;
  for (const StepRow& row : history.steps) steps += context.wants(row.step) ? 1 : 0;
  if (steps == 0) return;
  const int64_t width = width_for(steps, 1, context.options);
  note_width(context, width, steps);
  StretchWriter writer(context, kRoughNames, width, 1 + steps / width / kMostCurvePoints);
  int attempt = 0;
  for (const StepRow& row : history.steps) {
    if (!context.wants(row.step)) continue;
    if (row.attempt != attempt) writer.flush();
    attempt = row.attempt;
    const double begin = row.time - row.seconds;
    if (context.has_spans(row.step, begin)) {
      writer.flush(begin);
      continue;
    }
    const Phases phases = {row.data, row.compute, row.wait, 0, 0, 0, 0};
    writer.add({.step = row.step, .begin = begin, .ranks = {phases}});
  }
  writer.flush();
}

}  // namespace

void add_steps(TimelineContext& context) {
  std::vector<fs::path> files;
  for (const fs::path& file : step_times_files(context.run.facts.folder / "times")) {
    if (step_times_extent(file)) files.push_back(file);
  }
  if (!files.empty()) return add_timed_steps(context, files);
  context.notes.push_back(
      "The run has no times/: it was recorded without per-step accounting, so its steps are those "
      "of rank 0 as metrics.jsonl has them (data, compute, wait). Runs of this version record "
      "every "
      "rank's phases; for single steps span by span: lockstep trace RUN --live 5, while it runs.");
  add_recorded_steps(context);
}

}  // namespace lockstep
