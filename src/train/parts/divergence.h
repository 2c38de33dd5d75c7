// Detects that the loss diverges while it is still finite: its mean over the last few steps is far
// above its mean over many (as marian's --throw-on-divergence).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "config/fields.h"

namespace lockstep {

struct DivergenceConfig {
  double sigmas = 0;  // marian: 5
  int64_t window = 1000;
  int64_t recent = 10;
  // Describes the keys training.divergence_*.
  void describe(Fields& f);
};

class DivergenceDetector {
 public:
  explicit DivergenceDetector(const DivergenceConfig& config) : config_(config) {}

  // Takes a step's loss, equal on every rank, and returns what is wrong, or an empty text. Always
  // returns an empty text in the first 10 * recent steps, too few for a meaningful mean.
  std::string observe(double loss);

  std::map<std::string, double> state() const;
  void set_state(const std::map<std::string, double>& state);

 private:
  DivergenceConfig config_;
  // Exponential means over `window` and `recent` steps; plain means while there are fewer steps.
  double steps_ = 0, mean_ = 0, variance_ = 0, recent_mean_ = 0;
};

}  // namespace lockstep
