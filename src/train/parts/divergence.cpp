#include "train/parts/divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep {

void DivergenceConfig::describe(Fields& f) {
  f("divergence_sigmas", &sigmas, AtLeast{0},
    "stop when the recent loss is this many deviations above its mean (5 is usual); 0: never");
  f("divergence_window", &window, AtLeast{2}, "steps of that mean");
  f("divergence_recent", &recent, AtLeast{1}, "steps that count as recent");
}

std::string DivergenceDetector::observe(double loss) {
  if (config_.sigmas == 0) return "";
  steps_ += 1;
  recent_mean_ += (loss - recent_mean_) / std::min(steps_, static_cast<double>(config_.recent));
  const double deviation = std::sqrt(variance_), limit = mean_ + config_.sigmas * deviation;
  const bool judges = steps_ > 10 * static_cast<double>(config_.recent);
  if (judges && recent_mean_ > limit) {
    return fmt::format(
        "the loss over the last {} steps is {:.4g}, more than {:.4g} deviations ({:.3g}) above its "
        "mean of {:.4g} over {} steps",
        config_.recent, recent_mean_, config_.sigmas, deviation, mean_,
        std::min(config_.window, static_cast<int64_t>(steps_) - 1));
  }
  // A loss above the limit must not raise it, or divergence would never be detected.
  if (judges && loss > limit) return "";
  const double share = 1 / std::min(steps_, static_cast<double>(config_.window));
  const double away = loss - mean_;
  mean_ += share * away;
  variance_ = (1 - share) * (variance_ + share * away * away);  // West 1979
  return "";
}

std::map<std::string, double> DivergenceDetector::state() const {
  if (config_.sigmas == 0) return {};
  return {
      {"steps", steps_}, {"mean", mean_}, {"variance", variance_}, {"recent_mean", recent_mean_}};
}

void DivergenceDetector::set_state(const std::map<std::string, double>& state) {
  if (!state.contains("steps")) return;
  steps_ = state.at("steps");
  mean_ = state.at("mean");
  variance_ = state.at("variance");
  recent_mean_ = state.at("recent_mean");
}

}  // namespace lockstep
