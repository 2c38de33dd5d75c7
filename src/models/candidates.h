// Finds the most likely next tokens for every row of a decoder.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "nn/packed_linear.h"

namespace lockstep {

struct Candidates {
  int64_t per_row = 0;
  // [rows * per_row]: for each row the best first. A row with fewer candidates (everything else is
  // excluded) is filled up with log-probability -infinity and arbitrary ids.
  std::vector<float> log_probability;
  std::vector<int32_t> id;
};

// Normalises log-probabilities over the whole vocabulary, then leaves out the `excluded` ids.
// logits [rows, vocabulary], on any device and of any type; uses libtorch's operations.
Candidates best_candidates(const torch::Tensor& logits, int64_t per_row,
                           const std::vector<int32_t>& excluded);

// The same for the logits x table^T, on the CPU. The logits are computed in parts that stay in the
// cache; each is read once and none is kept. Equal logits are taken in order of their ids.
Candidates best_candidates(const PackedLinear& table, const PackedInput& x, int64_t per_row,
                           const std::vector<int32_t>& excluded);

}  // namespace lockstep
