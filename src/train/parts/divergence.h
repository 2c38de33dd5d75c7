// Notices that the loss runs away though it is still a number: its mean over the last few steps is
// far above its mean over many (as marian's --throw-on-divergence).
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
  // Keys training.divergence_*.
  void describe(Fields& f);
};

class DivergenceDetector {
 public:
  explicit DivergenceDetector(const DivergenceConfig& config) : config_(config) {}

  // Of the step's loss, equal on every rank. Empty, or what is wrong. Says nothing before
  // 10 * recent steps, when there is no mean to speak of.
  std::string observe(double loss);

  std::map<std::string, double> state() const;
  void set_state(const std::map<std::string, double>& state);

 private:
  DivergenceConfig config_;
  // Exponential means over `window` and `recent` steps, the plain means while there are fewer.
  double steps_ = 0, mean_ = 0, variance_ = 0, recent_mean_ = 0;
};

}  // namespace lockstep
