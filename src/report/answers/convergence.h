// Judges by pure functions, from the series of a run's evaluations, whether the run is trained to
// the end and whether it overfits, and how certain that is.
#pragma once

#include <optional>
#include <vector>

#include "report/run/analysis_series.h"

namespace lockstep {

enum class TrendKind { kUnknown, kImproving, kLevel, kWorse };

// The slope over the last half of the evaluations (4 or more), by least squares; 95 % intervals.
struct Trend {
  TrendKind kind = TrendKind::kUnknown;
  int evaluations = 0;                   // that the line was fitted to
  double slope = 0, margin = 0;          // change of the metric per step; half of the interval
  double gain_of_tenth = 0;              // gain from a tenth more training; better is above 0
  double gain_margin = 0;                // half of its interval
  double whole_change = 0;               // between the run's first and best evaluation
  double first_step = 0, last_step = 0;  // of the line
};
Trend judge_trend(const std::vector<Point>& evaluations, bool higher_is_better);

// pow3 of Domhan, Springenberg and Hutter 2015 ("Speeding up automatic hyperparameter optimization
// ...", table 1): y = end - scale * x^-power, with an interval from a bootstrap of the residuals
// (Efron 1979).
struct Saturation {
  double end = 0, scale = 0, power = 0;
  double deviation = 0;                // of the residuals
  double gain = 0;                     // gain from as many steps again; better is above 0
  double gain_low = 0, gain_high = 0;  // 95 % interval
};
// Returns nothing where it cannot be told: with fewer than 6 evaluations, no bend in the curve, or
// an interval wider than what the run gained so far.
std::optional<Saturation> fit_saturation(const std::vector<Point>& evaluations,
                                         bool higher_is_better);

enum class OverfitKind { kUnknown, kNone, kBegun, kClear };

struct Overfit {
  OverfitKind kind = OverfitKind::kUnknown;
  double turning_point = 0;     // step of the lowest evaluation loss
  double lowest = 0, last = 0;  // evaluation losses
  double noise = 0;             // standard deviation from one evaluation to the next
  double gap_at_turn = 0;       // evaluation minus training loss there
  double gap_last = 0;          // and at the end
};
// `evaluation` and `training` are losses at the same steps. Overfitting is clear when the last
// evaluations (3 at most) lie above the lowest by more than 3 deviations and 1 % of it while the
// training loss fell; it has begun when by more than 2 deviations.
Overfit judge_overfit(const std::vector<Point>& evaluation, const std::vector<Point>& training);

}  // namespace lockstep
