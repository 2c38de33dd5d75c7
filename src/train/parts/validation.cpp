#include "train/parts/validation.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace lockstep {

namespace {

bool higher_is_better(const std::string& metric, const std::vector<MetricKind>& kinds) {
  auto kind = std::find_if(kinds.begin(), kinds.end(),
                           [&](const MetricKind& k) { return k.name == metric; });
  TORCH_CHECK(kind != kinds.end(), "no metric ", metric);
  return kind->higher_is_better;
}

}  // namespace

Validation watch_metrics(const Validation& before, const std::vector<std::string>& metrics) {
  Validation out;
  for (const std::string& metric : metrics) {
    auto known = std::find_if(before.begin(), before.end(),
                              [&](const MetricHistory& h) { return h.metric == metric; });
    out.push_back(known == before.end() ? MetricHistory{.metric = metric} : *known);
  }
  return out;
}

Verdict note_evaluation(Validation& validation, int64_t step, const Evaluation& result,
                        const std::vector<MetricKind>& kinds, const ValidationRules& rules) {
  Verdict verdict;
  for (MetricHistory& history : validation) {
    double sign = higher_is_better(history.metric, kinds) ? 1 : -1;
    double value = result.metrics.at(history.metric);
    std::vector<RankedStep>& best = history.best;
    bool improved = !std::isnan(value) &&
                    (best.empty() || sign * (value - best.front().value) > rules.min_improvement);
    history.stalled = improved ? 0 : history.stalled + 1;
    if (improved) verdict.improved.push_back(history.metric);
    if (std::isnan(value)) continue;
    // Among equals the earlier one is better. One that is better by no more than min_improvement
    // comes after the best, which stays the reference for later ones.
    auto begin = best.begin() + (improved || best.empty() ? 0 : 1);
    auto place = std::find_if(begin, best.end(), [&](const RankedStep& other) {
      return sign * value > sign * other.value;
    });
    if (place - best.begin() >= rules.keep_best) continue;
    best.insert(place, {step, value});
    best.resize(std::min(best.size(), static_cast<std::size_t>(rules.keep_best)));
    verdict.among_best = true;
  }
  return verdict;
}

bool patience_is_over(const Validation& validation, const ValidationRules& rules) {
  if (rules.patience == 0 || validation.empty()) return false;
  auto stalled = [&](const MetricHistory& h) { return h.stalled >= rules.patience; };
  if (rules.stalled == "first") return stalled(validation.front());
  if (rules.stalled == "any") return std::any_of(validation.begin(), validation.end(), stalled);
  return std::all_of(validation.begin(), validation.end(), stalled);
}

std::string best_text(const Validation& validation) {
  std::vector<std::string> parts;
  for (const MetricHistory& history : validation) {
    if (history.best.empty()) continue;
    const RankedStep& best = history.best.front();
    parts.push_back(
        fmt::format("{} {:.4g} at step {}", history.metric, best.value, with_commas(best.step)));
  }
  return join(parts, ", ");
}

}  // namespace lockstep
