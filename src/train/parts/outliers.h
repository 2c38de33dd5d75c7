// Detects single steps that would spoil the weights (a gradient norm or a loss far from its recent
// values), and says what is to be done about them, and about steps that are not finite: section
// [guard]. Skipping batches, and going back a stretch and passing over its batches, is how large
// models were brought past such steps (PaLM, Chowdhery et al. 2022, section 5.1; OPT, Zhang et al.
// 2022, section 2.5).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "config/fields.h"

namespace lockstep {

struct GuardConfig {
  std::string not_finite = "stop";         // stop, skip or roll_back
  std::string norm = "off", loss = "off";  // off, skip, roll_back or stop
  std::string divergence = "stop";         // stop or roll_back: where training.divergence_* judge
  double norm_factor = 10, loss_sigmas = 8;
  int64_t window = 200;
  int64_t most = 5;
  bool keep_batches = true;
  std::string unequal_ranks = "mend";  // mend or stop
  void describe(Fields& f);
  bool rolls_back() const;
};

struct Outlier {
  std::string action;  // of GuardConfig; empty: the step is none
  std::string why;     // "the gradient norm, 812, is 41 times its mean of 19.8 over 200 steps"
};

class OutlierDetector {
 public:
  explicit OutlierDetector(const GuardConfig& config) : config_(config) {}

  // Takes the finite figures of a step, equal on every rank. Never judges in the first kFirst
  // steps, too few for a mean. What is found to be an outlier is in no mean.
  Outlier observe(double gradient_norm, double loss);

  std::map<std::string, double> state() const;
  void set_state(const std::map<std::string, double>& state);

  static constexpr int64_t kFirst = 30;

 private:
  GuardConfig config_;
  // Exponential means over `window` steps; plain means while there are fewer.
  double steps_ = 0, norm_ = 0, loss_ = 0, loss_variance_ = 0;
};

// Counts interventions, so that a run which needs them again and again ends.
class InterventionCount {
 public:
  explicit InterventionCount(const GuardConfig& config) : config_(config) {}

  void note_step() { recent_ *= 1 - 1 / static_cast<double>(config_.window); }
  // Returns whether one more is more than `guard.most` within about `guard.window` steps.
  bool is_too_many();

  double recent() const { return recent_; }
  void set_recent(double recent) { recent_ = recent; }

 private:
  GuardConfig config_;
  double recent_ = 0;  // each counts less with every step
};

}  // namespace lockstep
