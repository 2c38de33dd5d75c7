#include "data/parallel/batch_plan.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/random.h"

namespace lockstep {

namespace {

// Measures how full a step is, in target tokens or in sentences.
class Budget {
 public:
  Budget(std::span<const PairLength> lengths, const BatchConfig& config)
      : lengths_(lengths),
        by_sentences_(config.counts_sentences()),
        most_(config.step_size().size) {}
  int64_t most() const { return most_; }
  int64_t cost(int32_t pair) const {
    return by_sentences_ ? 1 : lengths_[static_cast<std::size_t>(pair)].target;
  }

 private:
  std::span<const PairLength> lengths_;
  bool by_sentences_;
  int64_t most_;
};

// Cuts `order` into steps within the budget, with at least one sentence each.
void cut_into_steps(std::span<const int32_t> order, const Budget& budget,
                    std::vector<StepPlan>& out) {
  StepPlan step;
  int64_t filled = 0;
  for (int32_t i : order) {
    if (!step.empty() && filled + budget.cost(i) > budget.most()) {
      out.push_back(std::move(step));
      step.clear();
      filled = 0;
    }
    step.push_back(i);
    filled += budget.cost(i);
  }
  if (!step.empty()) out.push_back(std::move(step));
}

// Plans the pairs of `order`, which are shuffled already.
std::vector<StepPlan> plan_pairs(std::span<const int32_t> order,
                                 std::span<const PairLength> lengths, const BatchConfig& config,
                                 uint64_t key) {
  std::vector<StepPlan> steps;
  const Budget budget(lengths, config);
  if (!config.by_length) {
    cut_into_steps(order, budget, steps);
    return steps;
  }
  const int64_t pool = budget.most() * config.pool_steps;
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    for (int64_t filled = 0; end < order.size() && filled < pool; ++end) {
      filled += budget.cost(order[end]);
    }
    std::vector<int32_t> pairs(order.begin() + begin, order.begin() + end);
    // The sort is stable: pairs of equal lengths keep the shuffled order, so that steps differ in
    // every epoch.
    std::stable_sort(pairs.begin(), pairs.end(), [&](int32_t a, int32_t b) {
      return std::tie(lengths[a].target, lengths[a].source) <
             std::tie(lengths[b].target, lengths[b].source);
    });
    cut_into_steps(pairs, budget, steps);
    begin = end;
  }
  shuffle_with_key(steps, combine_keys(key, 1));
  return steps;
}

}  // namespace

BatchConfig BatchConfig::with(const BatchSize& size) const {
  BatchConfig out = *this;
  const bool by_sentences = size.items == "sentences";
  out.sentences = by_sentences ? size.size : 0;
  out.tokens = by_sentences ? 0 : size.size;
  return out;
}

std::vector<StepPlan> plan_epoch(std::span<const PairLength> lengths, const BatchConfig& config,
                                 uint64_t seed, int64_t epoch,
                                 const std::vector<EpochStretch>& done) {
  uint64_t key = combine_keys(seed, static_cast<uint64_t>(epoch));
  std::vector<int32_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  shuffle_with_key(order, key);
  std::vector<StepPlan> steps;
  for (const EpochStretch& stretch : done) {
    std::vector<StepPlan> planned = plan_pairs(order, lengths, config.with(stretch.each), key);
    planned.resize(std::min(planned.size(), static_cast<std::size_t>(stretch.steps)));
    std::vector<bool> taken(lengths.size());
    for (const StepPlan& step : planned) {
      for (int32_t pair : step) taken[static_cast<std::size_t>(pair)] = true;
    }
    std::erase_if(order, [&](int32_t pair) { return taken[static_cast<std::size_t>(pair)]; });
    std::move(planned.begin(), planned.end(), std::back_inserter(steps));
  }
  std::vector<StepPlan> rest = plan_pairs(order, lengths, config, key);
  std::move(rest.begin(), rest.end(), std::back_inserter(steps));
  return steps;
}

std::vector<std::vector<int32_t>> split_step(const StepPlan& step,
                                             std::span<const PairLength> lengths,
                                             const StepParts& parts) {
  auto cost = [&](int32_t i) -> int64_t { return lengths[i].source + lengths[i].target; };
  StepPlan by_cost = step;
  std::stable_sort(by_cost.begin(), by_cost.end(),
                   [&](int32_t a, int32_t b) { return cost(a) > cost(b); });
  std::vector<int64_t> costs;
  for (int32_t i : by_cost) costs.push_back(cost(i));
  const std::vector<int64_t> part_of = parts.spread(costs);
  std::vector<std::vector<int32_t>> out(static_cast<std::size_t>(parts.count()));
  for (std::size_t i = 0; i < by_cost.size(); ++i) out[part_of[i]].push_back(by_cost[i]);
  return out;
}

}  // namespace lockstep
