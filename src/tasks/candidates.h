// The most likely next tokens of every row, out of a batch's logits.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "nn/numerics.h"

namespace lockstep {

struct Candidates {
  int64_t per_row = 0;
  // [rows * per_row]: of each row the best first. Where a row has fewer (everything else is
  // excluded), log-probability -infinity and any id.
  std::vector<float> log_probability;
  std::vector<int32_t> id;
};

// logits [rows, vocabulary], any device, overwritten; log-probabilities are normalised over the
// whole vocabulary, then `excluded` ids are left out. On the CPU with fused numerics in one pass of
// our own over each row, where equal logits are taken in order of their ids; else with libtorch's.
Candidates best_candidates(const torch::Tensor& logits, int64_t per_row,
                           const std::vector<int32_t>& excluded, const Numerics& numerics);

}  // namespace lockstep
