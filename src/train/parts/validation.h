// Keeps what evaluations have said so far: the best of each metric, how long it has not improved,
// and whether to go on. It is part of every checkpoint, so that a resumed run stops where an
// uninterrupted one would.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tasks/task.h"
#include "train/folder/metric_history.h"

namespace lockstep {

struct ValidationRules {
  int64_t keep_best = 1;          // entries of `best`, at least 1
  double min_improvement = 0;     // by more than this a value must beat the best to improve
  int64_t patience = 0;           // evaluations without improvement that end the run; 0: never
  std::string stalled = "first";  // which metrics must stall: first, any or all
};

// Returns `before` with an entry for each of `metrics`: new ones are empty, others dropped.
Validation watch_metrics(const Validation& before, const std::vector<std::string>& metrics);

struct Verdict {
  std::vector<std::string> improved;  // metrics with a new best
  bool among_best = false;            // by any metric: this step's checkpoint is to be kept
};

// Takes the evaluation after `step` into account. NaN is never among the best. REQUIRES that
// `result` has every metric of `validation`, and that `kinds` says which direction is better.
Verdict note_evaluation(Validation& validation, int64_t step, const Evaluation& result,
                        const std::vector<MetricKind>& kinds, const ValidationRules& rules);

// Returns whether the metrics that count have stalled for `patience` evaluations.
bool patience_is_over(const Validation& validation, const ValidationRules& rules);

// Returns "bleu 31.20 at step 900, chrf 55.10 at step 1,000".
std::string best_text(const Validation& validation);

}  // namespace lockstep
