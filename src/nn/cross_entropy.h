// Computes softmax cross-entropy with label smoothing (Szegedy et al. 2016, section 7) over a large
// vocabulary, including the output projection: logits exist for one chunk of rows at a time.
#pragma once

#include <torch/types.h>

#include <utility>

#include "nn/numerics.h"
#include "nn/parameters.h"

namespace lockstep {

struct CrossEntropyResult {
  torch::Tensor loss;     // fp32 scalar with gradient: sum over tokens of the smoothed loss
  torch::Tensor nll;      // fp32 scalar: sum of -log p(target), unsmoothed
  torch::Tensor correct;  // int64 scalar: tokens whose target is the most likely entry
};

// How label smoothing spreads `share` of the probability, and what loss a perfect model has.
struct SmoothingRule {
  bool over_others = false;       // over all entries but the target, as in OpenSeq2Seq; else all
  bool subtract_entropy = false;  // of the smoothed target: a perfect model has loss 0
};
// The rule, expressed in parameters of smoothed_cross_entropy.
struct LabelSmoothing {
  double share = 0;    // the `smoothing` that gives the target the wanted probability
  double entropy = 0;  // per token, in nats, to be subtracted from the loss
};
LabelSmoothing label_smoothing(double share, int64_t vocabulary, const SmoothingRule& rule);

// What gives the logits: hidden table^T + bias. The bias is constant.
struct OutputLayer {
  OutputLayer(const Parameter& rows, torch::Tensor added = {})  // NOLINT: a table alone will do
      : table(rows), bias(std::move(added)) {}

  const Parameter& table;  // [vocabulary, width]
  torch::Tensor bias;      // fp32 [vocabulary], no gradient; undefined: none
};

// hidden [tokens, width] in the compute type; targets int64 [tokens].
// Smoothing is that of torch's CrossEntropyLoss: (1 - s) on the target plus s / vocabulary on
// every entry. The loss is a SUM; divide the gradients by the number of tokens. When grad mode
// is on, the fused path computes the gradients, times numerics.loss_scale, in the forward pass
// and adds the table's straight to its grad(): call backward with loss_scale as its gradient
// only, which is checked.
CrossEntropyResult smoothed_cross_entropy(const torch::Tensor& hidden, const OutputLayer& output,
                                          const torch::Tensor& targets, double smoothing,
                                          const Numerics& numerics);

}  // namespace lockstep
