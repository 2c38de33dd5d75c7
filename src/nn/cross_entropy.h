// Softmax cross-entropy with label smoothing (Szegedy et al. 2016, section 7) over a large
// vocabulary, output projection included: logits exist for one chunk of rows at a time.
#pragma once

#include <torch/types.h>

#include "nn/numerics.h"
#include "nn/parameters.h"

namespace lockstep {

struct CrossEntropyResult {
  torch::Tensor loss;     // fp32 scalar with gradient: sum over tokens of the smoothed loss
  torch::Tensor nll;      // fp32 scalar: sum of -log p(target), unsmoothed
  torch::Tensor correct;  // int64 scalar: tokens whose most likely entry is the target
};

// What `share` of the probability is spread over, and what the loss of a perfect model is.
struct SmoothingRule {
  bool over_others = false;       // over all entries but the target, as OpenSeq2Seq; else over all
  bool subtract_entropy = false;  // of the smoothed target: a perfect model has loss 0
};
// The rule in terms of smoothed_cross_entropy.
struct LabelSmoothing {
  double share = 0;    // `smoothing` that gives the target its probability of 1 - `share` asked for
  double entropy = 0;  // per token, to be subtracted from the loss; nats
};
LabelSmoothing label_smoothing(double share, int64_t vocabulary, const SmoothingRule& rule);

// hidden [tokens, width] in the compute type; table [vocabulary, width]; targets int64 [tokens].
// Smoothing as torch's CrossEntropyLoss: (1 - s) on the target plus s / vocabulary on every entry.
// loss is a SUM; divide the gradients by the number of tokens. The fused path makes the gradients
// in the forward pass (table's goes straight into its grad()) when grad mode is on, times
// numerics.loss_scale: call backward with that gradient only, which is checked.
CrossEntropyResult smoothed_cross_entropy(const torch::Tensor& hidden, const Parameter& table,
                                          const torch::Tensor& targets, double smoothing,
                                          const Numerics& numerics);

}  // namespace lockstep
