#include "data/batch_plan.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/random.h"

namespace lockstep {

namespace {

// Cuts `order` into steps of at most `tokens` target tokens, at least one sentence each.
void cut_into_steps(std::span<const int32_t> order, std::span<const PairLength> lengths,
                    int64_t tokens, std::vector<StepPlan>& out) {
  StepPlan step;
  int64_t filled = 0;
  for (int32_t i : order) {
    if (!step.empty() && filled + lengths[i].target > tokens) {
      out.push_back(std::move(step));
      step.clear();
      filled = 0;
    }
    step.push_back(i);
    filled += lengths[i].target;
  }
  if (!step.empty()) out.push_back(std::move(step));
}

}  // namespace

std::vector<StepPlan> plan_epoch(std::span<const PairLength> lengths, const BatchConfig& config,
                                 uint64_t seed, int64_t epoch) {
  uint64_t key = combine_keys(seed, static_cast<uint64_t>(epoch));
  std::vector<int32_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  shuffle_with_key(order, key);
  std::vector<StepPlan> steps;
  if (!config.by_length) {
    cut_into_steps(order, lengths, config.tokens, steps);
    return steps;
  }
  int64_t pool_tokens = config.tokens * config.pool_steps;
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    for (int64_t filled = 0; end < order.size() && filled < pool_tokens; ++end) {
      filled += lengths[order[end]].target;
    }
    std::span<int32_t> pool(order.data() + begin, end - begin);
    // Stable: pairs of equal lengths stay in shuffled order, so that steps differ every epoch.
    std::stable_sort(pool.begin(), pool.end(), [&](int32_t a, int32_t b) {
      return std::tie(lengths[a].target, lengths[a].source) <
             std::tie(lengths[b].target, lengths[b].source);
    });
    cut_into_steps(pool, lengths, config.tokens, steps);
    begin = end;
  }
  shuffle_with_key(steps, combine_keys(key, 1));
  return steps;
}

std::vector<std::vector<int32_t>> split_step(const StepPlan& step,
                                             std::span<const PairLength> lengths, int64_t parts) {
  auto cost = [&](int32_t i) { return lengths[i].source + lengths[i].target; };
  StepPlan by_cost = step;
  std::stable_sort(by_cost.begin(), by_cost.end(),
                   [&](int32_t a, int32_t b) { return cost(a) > cost(b); });
  std::vector<std::vector<int32_t>> out(static_cast<std::size_t>(parts));
  std::vector<int64_t> load(static_cast<std::size_t>(parts), 0);
  for (int32_t i : by_cost) {
    auto least = std::min_element(load.begin(), load.end()) - load.begin();
    out[least].push_back(i);
    load[least] += cost(i);
  }
  return out;
}

}  // namespace lockstep
