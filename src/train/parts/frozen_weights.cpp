#include "train/parts/frozen_weights.h"

#include <regex>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

std::vector<bool> names_match(const Parameters& parameters,
                              const std::vector<std::string>& expressions, const std::string& key) {
  std::vector<bool> chosen(parameters.list().size());
  for (const std::string& expression : expressions) {
    std::regex pattern(expression);
    bool any = false;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (!std::regex_match(parameters.list()[i]->name, pattern)) continue;
      chosen[i] = any = true;
    }
    if (any) continue;
    std::vector<std::string> names;
    for (const ParameterRef& p : parameters.list()) names.push_back(p->name);
    ConfigError error("{}: no weight is named \"{}\"{}", key, expression,
                      did_you_mean(expression, names));
    error.set_advice("an expression for the whole name, as \"" + names.front() + "\" or \".*" +
                     names.back().substr(names.back().rfind('.') + 1) + "\"");
    throw error;
  }
  return chosen;
}

FrozenWeights::FrozenWeights(const Parameters& parameters,
                             const std::vector<std::string>& expressions) {
  const std::vector<bool> chosen = names_match(parameters, expressions, "training.freeze");
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i]) frozen_.push_back({parameters.list()[i], {}});
  }
  if (frozen_.size() == chosen.size()) {
    throw ConfigError("training.freeze: every weight is frozen; nothing is left to train");
  }
  remember();
}

void FrozenWeights::remember() {
  torch::NoGradGuard no_grad;
  for (Frozen& frozen : frozen_) frozen.kept = frozen.parameter->value.detach().clone();
}

void FrozenWeights::drop_gradients() {
  for (Frozen& frozen : frozen_) frozen.parameter->value.mutable_grad().zero_();
}

void FrozenWeights::restore(const torch::Tensor& average) {
  torch::NoGradGuard no_grad;
  for (Frozen& frozen : frozen_) {
    const Parameter& p = *frozen.parameter;
    for (torch::Tensor t : {p.value, p.low}) {
      if (t.defined()) t.copy_(frozen.kept);
    }
    if (average.defined()) average.narrow(0, p.offset, p.numel).copy_(frozen.kept.flatten());
  }
}

int64_t FrozenWeights::count() const {
  int64_t count = 0;
  for (const Frozen& frozen : frozen_) count += frozen.parameter->numel;
  return count;
}

}  // namespace lockstep
