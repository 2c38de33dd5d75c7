// What evaluations have said so far: the best of each metric, how long none has improved, and
// whether to go on. Part of every checkpoint, so that a resumed run stops where the whole one
// would.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tasks/task.h"

namespace lockstep {

struct RankedStep {
  int64_t step = 0;
  double value = 0;
};

struct MetricHistory {
  std::string metric;
  std::vector<RankedStep> best;  // best first
  int64_t stalled = 0;           // evaluations since the best one changed
};

// One entry a metric that is watched, in the order of evaluation.metrics.
using Validation = std::vector<MetricHistory>;

struct ValidationRules {
  int64_t keep_best = 1;          // entries of `best`, at least 1
  double min_improvement = 0;     // a metric improves when it beats its best by more
  int64_t patience = 0;           // stalled evaluations that end the run; 0: none does
  std::string stalled = "first";  // first, any or all of the metrics
};

// `before` with an entry for each of `metrics`, new ones empty, others dropped.
Validation watch_metrics(const Validation& before, const std::vector<std::string>& metrics);

struct Verdict {
  std::vector<std::string> improved;  // metrics with a new best
  bool among_best = false;            // of any metric: this step's checkpoint is to be kept
};

// Takes the evaluation after `step` into account. Not a number is never among the best.
// REQUIRES: result has every metric of `validation`, and `kinds` says which way each is better.
Verdict note_evaluation(Validation& validation, int64_t step, const Evaluation& result,
                        const std::vector<MetricKind>& kinds, const ValidationRules& rules);

// True when the metrics that count have stalled for `patience` evaluations.
bool patience_is_over(const Validation& validation, const ValidationRules& rules);

// "bleu 31.20 at step 900, chrf 55.10 at step 1,000".
std::string best_text(const Validation& validation);

// The steps whose checkpoints stay.
std::set<int64_t> best_steps(const Validation& validation);

}  // namespace lockstep
