// Keeps one bad step from spoiling the weights: by loss scaling and skipped updates in fp16,
// repetition in fp32, and detection of outliers and divergence. It decides from numbers that are
// equal on every rank, so that all ranks decide the same without a message of their own.
#pragma once

#include <torch/types.h>

#include <map>
#include <optional>
#include <string>

#include "nn/numerics.h"
#include "optim/optimizers/loss_scaler.h"
#include "train/parts/divergence.h"
#include "train/parts/outliers.h"

namespace lockstep {

struct StepSigns {  // what is known of a step before its update, over all ranks
  int64_t step = 0;
  double loss = 0;             // mean over targets
  double gradient_norm = 0;    // of the mean gradient, unscaled
  torch::Tensor gradients;     // flat fp32, as the reduction left them
  double gradient_factor = 1;  // divide them by it to get the mean gradient
};

enum class StepVerdict {
  kUpdate,    // all is well
  kSkip,      // fp16 gradients overflowed: no update, a smaller loss scale, the next batch
  kRepeat,    // the same batch again in fp32, with the weights as they are
  kPassOver,  // no update, the next batch (GuardConfig, "skip")
  kRollBack,  // the weights of the newest checkpoint, the next batch
};

// A step is repeated in fp32 when its loss is not finite or its bf16 gradients are not: the range
// or precision that the smaller format lacked may suffice there. fp16 gradients that overflow at
// the smallest loss scale are repeated too. After kMostRepeats repetitions, or after that overflow,
// the rest of the run computes in fp32. What becomes of a step that is not finite in fp32, and of
// an outlier, is configured.
class StepGuard {
 public:
  StepGuard(const Numerics& numerics, const LossScaleConfig& scaling,
            const DivergenceConfig& divergence, const GuardConfig& config = {});

  // Returns how the next forward and backward pass computes, for a step with that many targets. In
  // fp16 the loss is the mean over targets times the loss scale, as in the implementations that the
  // usual constants come from; in other formats gradients are plain sums over targets.
  Numerics numerics(int64_t targets) const;

  // Throws DivergedError, where a step is to stop the run or one more intervention is too many.
  StepVerdict judge(const StepSigns& signs);
  // Says why the last verdict was kPassOver or kRollBack.
  const std::string& why() const { return why_; }
  InterventionCount& interventions() { return interventions_; }

  // The loss scale of the current step; none but in fp16.
  std::optional<double> loss_scale() const;
  int64_t skipped_steps() const { return skipped_; }

  std::map<std::string, double> state() const;
  void set_state(const std::map<std::string, double>& state);

  static constexpr int kMostRepeats = 10;

 private:
  StepVerdict repeat(const StepSigns& signs, const std::string& why);
  void stay_in_fp32(const std::string& why);
  std::string overflow_text(int64_t step, double scale) const;
  StepVerdict intervene(const std::string& action, const StepSigns& signs, const std::string& why);

  Numerics numerics_;  // as configured; fp32 after a fall-back
  LossScaler scaler_;
  DivergenceDetector divergence_;
  GuardConfig config_;
  OutlierDetector outliers_;
  InterventionCount interventions_;
  std::string why_;
  bool repeating_ = false;  // the current step runs in fp32
  bool fell_back_ = false;  // to fp32, for the rest of the run
  int64_t skipped_ = 0, repeated_ = 0;
};

}  // namespace lockstep
