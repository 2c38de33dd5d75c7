#include "tasks/scoring.h"

#include <algorithm>
#include <numeric>

#include "tasks/translator.h"

namespace lockstep {
namespace {

using torch::Tensor;

constexpr std::size_t kBatchTokens = 1024;  // tokens whose logits are held at a time

// Batches pairs of similar length together.
std::vector<std::vector<std::size_t>> make_batches(const std::vector<PairIds>& pairs) {
  std::vector<std::size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return pairs[a].target.size() < pairs[b].target.size();
  });
  std::vector<std::vector<std::size_t>> batches;
  std::size_t tokens = kBatchTokens;
  for (std::size_t i : order) {
    tokens += pairs[i].target.size() + 1;
    if (tokens > kBatchTokens) {
      batches.emplace_back();
      tokens = pairs[i].target.size() + 1;
    }
    batches.back().push_back(i);
  }
  return batches;
}

}  // namespace

std::vector<std::vector<float>> score_pairs(const Transformer& model,
                                            const std::vector<PairIds>& pairs,
                                            const SpecialIds& special, const Numerics& numerics) {
  torch::InferenceMode inference;
  std::vector<std::vector<float>> out(pairs.size());
  ForwardContext context;
  context.numerics = numerics;
  // What follows the primer is predicted, but belongs to no translation: it is left out here.
  const std::vector<int64_t> primer = primer_of(special, model.config());
  std::vector<int32_t> start(primer.begin(), primer.end());
  start.push_back(special.bos);
  const std::vector<int32_t> prefix = source_prefix_of(special, model.config());
  for (const std::vector<std::size_t>& batch : make_batches(pairs)) {
    std::vector<std::vector<int32_t>> sources, targets_in;
    std::vector<int64_t> wanted;
    for (std::size_t i : batch) {
      sources.push_back(prefix);
      sources.back().insert(sources.back().end(), pairs[i].source.begin(), pairs[i].source.end());
      sources.back().push_back(special.eos);
      targets_in.push_back(start);
      const std::vector<int32_t>& target = pairs[i].target;
      wanted.insert(wanted.end(), start.begin() + 1, start.end());
      targets_in.back().insert(targets_in.back().end(), target.begin(), target.end());
      wanted.insert(wanted.end(), target.begin(), target.end());
      wanted.push_back(special.eos);
    }
    const TranslationInput input{pack_sentences(sources, model.device()),
                                 pack_sentences(targets_in, model.device())};
    // The softmax goes over all rows of the table, as in the loss.
    const Tensor logits = model.logits(model.forward(input, context), numerics);
    const Tensor ids = torch::tensor(wanted, torch::kInt64).to(model.device()).unsqueeze(1);
    const Tensor chosen = logits.log_softmax(1).gather(1, ids).cpu().contiguous();
    const float* next = chosen.const_data_ptr<float>();
    for (std::size_t i : batch) {
      const std::size_t tokens = pairs[i].target.size() + 1;
      next += primer.size();
      out[i].assign(next, next + tokens);
      next += tokens;
    }
  }
  return out;
}

}  // namespace lockstep
