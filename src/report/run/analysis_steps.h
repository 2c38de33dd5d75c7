// Tells where a run's time went, how long steps take, and why some take longer, by pure functions
// of report/run/run_history.h.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "report/run/run_history.h"

namespace lockstep {

// A part of the wall time from the first line of the run to its newest; all parts add up to it.
struct TimePart {
  std::string name;     // "compute"
  std::string meaning;  // for people
  double seconds = 0;
};

// What per-step accounting knows of rank 0's steps, to replace its lines in metrics.jsonl.
struct MeasuredSteps {
  std::function<bool(int64_t step)> covers;  // whether `parts` include a step; empty: none
  std::vector<TimePart> parts;
};
std::vector<TimePart> time_parts(const RunHistory& history, const MeasuredSteps& measured = {});

// Durations of a step in seconds, without the first steps of each attempt, which warm up.
struct StepDurations {
  std::size_t count = 0;
  double mean = 0, median = 0, p95 = 0, p99 = 0, longest = 0, shortest = 0;
  double compute = 0, wait = 0, data = 0;  // means
};
inline constexpr int64_t kWarmUpSteps = 3;  // of an attempt
StepDurations step_durations(const RunHistory& history);

// A step that took longer than the limit of find_outliers().
struct SlowStep {
  int64_t step = 0;
  double seconds = 0, excess = 0;  // over the median
  std::string cause;
};
struct Outliers {
  double limit = 0;             // seconds
  std::vector<SlowStep> steps;  // in order of steps
  struct Cause {
    std::string cause;
    std::size_t steps = 0;
    double seconds = 0;  // excess, summed up
  };
  std::vector<Cause> causes;  // the costliest first
};
// Finds steps slower than the median by 6 robust deviations and a fifth of it. The cause is what
// the step's own figures show: beginning of an attempt, right after an evaluation or checkpoint,
// meeting, data, waiting, a larger batch; else computing.
Outliers find_outliers(const RunHistory& history);
// Returns whether a cause says no more than which of rank 0's times was long.
bool is_general(const std::string& cause);
// Recomputes `causes` from the causes of `steps`.
void add_up_causes(Outliers& outliers);

}  // namespace lockstep
