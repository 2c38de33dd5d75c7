// Implements loss scaling for fp16 (Micikevicius et al. 2018, "Mixed Precision Training", section
// 3.2): the gradients are multiplied by a scale, so that fewer of them vanish below 2^-24, and
// divided by it before the optimizer sees them. The right scale changes during training; each
// policy finds it from the overflows it causes.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "config/fields.h"

namespace lockstep {

struct LossScaleConfig {
  std::string name = "backoff";
  // 0 stands for the policy's own value, given in the table below.
  double initial = 0;
  double minimum = 0;
  double maximum = 0;
  int64_t window = 0;
  double factor = 2;
  // The following are used by log_max only.
  double log_max = 16;
  double beta1 = 0.99;
  double beta2 = 0.999;
  double overflow_deviations = 3.09;  // a share of 0.001 of a normal distribution is above

  void describe(Fields& f);
};

// policy   initial  minimum  maximum
// backoff  2^14     1        2^14     OpenSeq2Seq's "Backoff": divides by `factor` at an overflow,
//                                     multiplies after `window` (2000) steps without one
// apex     2^16     2^-24    2^24     the same with NVIDIA apex's constants (it has no minimum)
// torch    2^16     2^-24    none     the same with those of torch.amp.GradScaler
// log_max  1        1        2^14     OpenSeq2Seq's "LogMax": 2^(log_max - (mean +
//                                     overflow_deviations * deviation)) of log2 of the
//                                     largest gradient
// static   2^10     initial  initial  never changes
class LossScaler {
 public:
  explicit LossScaler(const LossScaleConfig& config);

  double scale() const { return scale_; }

  // Call after each step. `largest`: the largest magnitude among the mean gradients, unscaled; only
  // log_max uses it (needs_largest). Returns false when the step overflowed at the smallest scale
  // (static: 10 times in a row), so that a smaller one cannot help.
  bool update(bool overflowed, double largest = 0);
  bool needs_largest() const { return config_.name == "log_max"; }
  bool is_apex() const { return config_.name == "apex"; }

  // The complete state, for checkpoints: a resumed scaler continues bit for bit.
  std::map<std::string, double> state() const;
  void set_state(const std::map<std::string, double>& state);

 private:
  void follow_largest(bool overflowed, double largest);

  LossScaleConfig config_;  // with the policy's values instead of zeros
  double scale_ = 1;
  double clean_steps_ = 0;       // since the last overflow or increase
  double overflows_in_row_ = 0;  // up to now
  // log_max: moving means of x = log2(largest), fast and slow, and of x^2; and the weight they lack
  // to 1.
  double fast_ = 0, slow_ = 0, square_ = 0, lack_fast_ = 1, lack_slow_ = 1;
};

}  // namespace lockstep
