// The most likely next tokens of every row of a decoder.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "nn/packed_linear.h"

namespace lockstep {

struct Candidates {
  int64_t per_row = 0;
  // [rows * per_row]: of each row the best first. Where a row has fewer (everything else is
  // excluded), log-probability -infinity and any id.
  std::vector<float> log_probability;
  std::vector<int32_t> id;
};

// Log-probabilities are normalised over the whole vocabulary, then `excluded` ids are left out.
// logits [rows, vocabulary], any device and type; with libtorch's operations.
Candidates best_candidates(const torch::Tensor& logits, int64_t per_row,
                           const std::vector<int32_t>& excluded);

// The same of the logits x table^T, on the CPU. The logits are made in parts that stay in the
// cache, each is looked at once and none is kept. Equal logits are taken in order of their ids.
Candidates best_candidates(const PackedLinear& table, const PackedInput& x, int64_t per_row,
                           const std::vector<int32_t>& excluded);

}  // namespace lockstep
