// Computes how probable given translations are under the network ("forced decoding").
#pragma once

#include <cstdint>
#include <vector>

#include "decode/beam_search.h"
#include "models/transformer.h"

namespace lockstep {

struct PairIds {
  std::vector<int32_t> source, target;  // pieces without special ids; either may be empty
};

// Returns, for every pair, the natural log p(token | source, tokens before) of the target's pieces
// and of </s>: target.size() + 1 numbers. Teacher-forced with the operations of training, without
// dropout, so that their mean over a corpus is the evaluation's `nll` with its sign changed.
std::vector<std::vector<float>> score_pairs(const Transformer& model,
                                            const std::vector<PairIds>& pairs,
                                            const SpecialIds& special, const Numerics& numerics);

}  // namespace lockstep
