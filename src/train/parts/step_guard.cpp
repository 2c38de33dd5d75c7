#include "train/parts/step_guard.h"

#include <cmath>

#include "base/error.h"
#include "base/log.h"

namespace lockstep {

namespace {

DivergedError diverged(std::string message) {
  DivergedError error("{}", message);
  error.set_advice(
      "a smaller optimizer.lr, more schedule.warmup_steps or training.clip_norm; the checkpoints "
      "so far are as they were, --resume goes on from the newest");
  return error;
}

double largest_magnitude(const torch::Tensor& flat) {
  auto [lowest, highest] = at::aminmax(flat);
  return std::max(-lowest.item<double>(), highest.item<double>());
}

void add_prefixed(const std::string& prefix, const std::map<std::string, double>& from,
                  std::map<std::string, double>& to) {
  for (const auto& [name, value] : from) to[prefix + name] = value;
}

std::map<std::string, double> with_prefix(const std::map<std::string, double>& all,
                                          const std::string& prefix) {
  std::map<std::string, double> out;
  for (const auto& [name, value] : all) {
    if (name.starts_with(prefix)) out[name.substr(prefix.size())] = value;
  }
  return out;
}

}  // namespace

StepGuard::StepGuard(const Numerics& numerics, const LossScaleConfig& scaling,
                     const DivergenceConfig& divergence, const GuardConfig& config)
    : numerics_(numerics),
      scaler_(scaling),
      divergence_(divergence),
      config_(config),
      outliers_(config),
      interventions_(config) {}

Numerics StepGuard::numerics(int64_t targets) const {
  Numerics out = numerics_;
  if (repeating_) out.compute = at::kFloat;
  if (out.compute == at::kHalf) {
    out.loss_scale = static_cast<float>(scaler_.scale() / static_cast<double>(targets));
  }
  return out;
}

std::optional<double> StepGuard::loss_scale() const {
  if (repeating_ || numerics_.compute != at::kHalf) return std::nullopt;
  return scaler_.scale();
}

StepVerdict StepGuard::judge(const StepSigns& signs) {
  const bool loss_is_finite = std::isfinite(signs.loss);
  const bool is_finite = loss_is_finite && std::isfinite(signs.gradient_norm);
  const bool low = !repeating_ && numerics_.compute != at::kFloat;
  if (!is_finite && !low) {
    return intervene(config_.not_finite, signs,
                     fmt::format("loss {} and gradient norm {} are not finite in fp32", signs.loss,
                                 signs.gradient_norm));
  }
  // A loss becomes non-finite in the forward pass, which the loss scale does not affect.
  if (!loss_is_finite) return repeat(signs, "the loss is not finite");
  if (low && numerics_.compute == at::kHalf) {
    const double scale = scaler_.scale();
    const double largest = scaler_.needs_largest() && is_finite
                               ? largest_magnitude(signs.gradients) / signs.gradient_factor
                               : 0;
    const bool can_go_on = scaler_.update(!is_finite, largest);
    if (!is_finite && can_go_on) {
      ++skipped_;
      log_info("{}", overflow_text(signs.step, scale));
      return StepVerdict::kSkip;
    }
    if (!is_finite) {
      stay_in_fp32(fmt::format("step {}: gradient overflow at the smallest loss scale, {}",
                               signs.step, scale));
      return StepVerdict::kRepeat;
    }
  }
  if (!is_finite) return repeat(signs, "the gradient is not finite");
  repeating_ = false;
  const Outlier outlier = outliers_.observe(signs.gradient_norm, signs.loss);
  if (!outlier.action.empty()) return intervene(outlier.action, signs, outlier.why);
  const std::string worry = divergence_.observe(signs.loss);
  if (!worry.empty()) return intervene(config_.divergence, signs, worry);
  interventions_.note_step();
  return StepVerdict::kUpdate;
}

StepVerdict StepGuard::intervene(const std::string& action, const StepSigns& signs,
                                 const std::string& why) {
  if (action == "stop") throw diverged(fmt::format("step {}: {}", signs.step, why));
  if (interventions_.is_too_many()) {
    throw diverged(fmt::format(
        "step {}: {}; more than {} such steps within about {} (guard.most, guard.window)",
        signs.step, why, config_.most, config_.window));
  }
  repeating_ = false;
  why_ = why;
  const bool back = action == "roll_back";
  log_warning("step {}: {}; {}", signs.step, why,
              back ? "going back to the newest checkpoint" : "its batch is passed over");
  return back ? StepVerdict::kRollBack : StepVerdict::kPassOver;
}

// With NVIDIA apex's constants, uses apex's words, since scripts look for them.
std::string StepGuard::overflow_text(int64_t step, double scale) const {
  if (!scaler_.is_apex()) {
    return fmt::format("step {}: gradient overflow; skipping the update, loss scale {} -> {}", step,
                       scale, scaler_.scale());
  }
  const double now = scaler_.scale();
  return fmt::format("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {}{}",
                     now, now == std::floor(now) ? ".0" : "");
}

StepVerdict StepGuard::repeat(const StepSigns& signs, const std::string& why) {
  const std::string message = fmt::format("step {}: {} in {}", signs.step, why,
                                          numerics_.compute == at::kHalf ? "fp16" : "bf16");
  repeating_ = true;
  if (++repeated_ >= kMostRepeats) {
    stay_in_fp32(message + fmt::format(", for the {}th time", repeated_));
  } else {
    log_warning("{}; repeating the step in fp32", message);
  }
  return StepVerdict::kRepeat;
}

void StepGuard::stay_in_fp32(const std::string& why) {
  fell_back_ = true;
  numerics_.compute = at::kFloat;
  log_warning("{}; the run goes on in fp32, from the weights of the last good step", why);
}

std::map<std::string, double> StepGuard::state() const {
  std::map<std::string, double> out;
  add_prefixed("divergence.", divergence_.state(), out);
  add_prefixed("outliers.", outliers_.state(), out);
  if (interventions_.recent() > 0) out["interventions"] = interventions_.recent();
  if (skipped_ > 0) out["skipped_steps"] = static_cast<double>(skipped_);
  if (repeated_ > 0) out["repeated_steps"] = static_cast<double>(repeated_);
  if (numerics_.compute == at::kHalf) add_prefixed("loss_scale.", scaler_.state(), out);
  if (fell_back_) out["fell_back_to_fp32"] = 1;
  return out;
}

void StepGuard::set_state(const std::map<std::string, double>& state) {
  divergence_.set_state(with_prefix(state, "divergence."));
  outliers_.set_state(with_prefix(state, "outliers."));
  scaler_.set_state(with_prefix(state, "loss_scale."));
  auto number = [&](const char* name) {
    auto found = state.find(name);
    return found == state.end() ? int64_t{0} : static_cast<int64_t>(found->second);
  };
  const auto recent = state.find("interventions");
  interventions_.set_recent(recent == state.end() ? 0 : recent->second);
  skipped_ = number("skipped_steps");
  repeated_ = number("repeated_steps");
  if (number("fell_back_to_fp32") == 1 && numerics_.compute != at::kFloat) {
    stay_in_fp32("the run that is resumed had left its 16-bit format");
  }
}

}  // namespace lockstep
