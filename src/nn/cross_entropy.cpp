#include "nn/cross_entropy.h"

#include "nn/plain.h"

namespace lockstep {
namespace {

CrossEntropyResult plain_cross_entropy(const torch::Tensor& hidden, const Parameter& table,
                                       const torch::Tensor& targets, double smoothing,
                                       at::ScalarType compute) {
  torch::Tensor logits = at::linear(hidden, detail::plain_weight(table, compute)).to(torch::kFloat);
  torch::Tensor log_p = logits.log_softmax(1);  // [tokens, vocabulary]
  torch::Tensor nll = -log_p.gather(1, targets.unsqueeze(1)).sum();
  double share = smoothing / static_cast<double>(table.shape[0]);
  CrossEntropyResult result;
  result.loss = nll * (1 - smoothing) - log_p.sum() * share;
  result.nll = nll.detach();
  result.correct = (logits.detach().argmax(1) == targets).sum();
  return result;
}

}  // namespace

CrossEntropyResult smoothed_cross_entropy(const torch::Tensor& hidden, const Parameter& table,
                                          const torch::Tensor& targets, double smoothing,
                                          const Numerics& numerics) {
  return plain_cross_entropy(hidden, table, targets, smoothing, numerics.compute);
}

}  // namespace lockstep
