#include "train/parts/outliers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep {

void GuardConfig::describe(Fields& f) {
  f("not_finite", &not_finite, OneOf{{"stop", "skip", "roll_back"}},
    "of a step whose loss or gradient is not finite in fp32 either: the run stops; the batch is "
    "passed over; or the weights of the newest checkpoint, and the batches since are passed over");
  f("norm", &norm, OneOf{{"off", "skip", "roll_back", "stop"}},
    "what is done when the gradient norm is norm_factor times its mean");
  f("norm_factor", &norm_factor, Above{1}, "that makes a norm an outlier");
  f("loss", &loss, OneOf{{"off", "skip", "roll_back", "stop"}},
    "what is done when the loss of a step is loss_sigmas deviations above its mean");
  f("loss_sigmas", &loss_sigmas, Above{0}, "that make a loss an outlier");
  f("divergence", &divergence, OneOf{{"stop", "roll_back"}},
    "what is done when training.divergence_sigmas finds that the loss diverges");
  f("window", &window, AtLeast{10}, "steps of those means");
  f("most", &most, AtLeast{1}, "interventions within about `window` steps; one more ends the run");
  f("keep_batches", &keep_batches, Any{},
    "the batch of such a step is kept in the run folder, bad_batches/");
  f("unequal_ranks", &unequal_ranks, OneOf{{"mend", "stop"}},
    "what is done when training.check_weights_every finds a rank with other bits: it gets those of "
    "the others, or all get those of the newest checkpoint where no majority agrees; or the run "
    "stops");
}

bool GuardConfig::rolls_back() const {
  return not_finite == "roll_back" || norm == "roll_back" || loss == "roll_back" ||
         divergence == "roll_back";
}

Outlier OutlierDetector::observe(double gradient_norm, double loss) {
  const double over = std::min(steps_, static_cast<double>(config_.window));
  const double deviation = std::sqrt(loss_variance_);
  if (steps_ >= static_cast<double>(kFirst)) {
    if (config_.norm != "off" && gradient_norm > config_.norm_factor * norm_) {
      return {
          config_.norm,
          fmt::format("the gradient norm, {:.4g}, is {:.3g} times its mean of {:.4g} over {} steps",
                      gradient_norm, gradient_norm / norm_, norm_, over)};
    }
    if (config_.loss != "off" && loss > loss_ + config_.loss_sigmas * deviation) {
      return {
          config_.loss,
          fmt::format("the loss, {:.4g}, is more than {:.4g} deviations ({:.3g}) above its mean "
                      "of {:.4g} over {} steps",
                      loss, config_.loss_sigmas, deviation, loss_, over)};
    }
  }
  steps_ += 1;
  const double share = 1 / std::min(steps_, static_cast<double>(config_.window));
  norm_ += share * (gradient_norm - norm_);
  const double away = loss - loss_;
  loss_ += share * away;
  loss_variance_ = (1 - share) * (loss_variance_ + share * away * away);  // West 1979
  return {};
}

std::map<std::string, double> OutlierDetector::state() const {
  if (config_.norm == "off" && config_.loss == "off") return {};
  return {{"steps", steps_}, {"norm", norm_}, {"loss", loss_}, {"loss_variance", loss_variance_}};
}

void OutlierDetector::set_state(const std::map<std::string, double>& state) {
  if (!state.contains("steps")) return;
  steps_ = state.at("steps");
  norm_ = state.at("norm");
  loss_ = state.at("loss");
  loss_variance_ = state.at("loss_variance");
}

bool InterventionCount::is_too_many() {
  recent_ += 1;
  return recent_ > static_cast<double>(config_.most) + 0.5;  // old ones never fade to nothing
}

}  // namespace lockstep
