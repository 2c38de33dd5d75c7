// Finds the most likely next tokens for every row of a decoder.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/packed_linear.h"

namespace lockstep {

struct Candidates {
  int64_t per_row = 0;
  // [rows * per_row]: for each row the best first. A row with fewer candidates (everything else is
  // excluded) is filled up with log-probability -infinity and arbitrary ids.
  std::vector<float> log_probability;
  std::vector<int32_t> id;
};

Candidates no_candidates(int64_t rows, int64_t per_row);

// The best of the logits x table^T, normalised over the whole vocabulary, without the `excluded`
// ids. The logits are computed in parts that stay in the cache; each is read once and none is kept.
// Equal logits are taken in order of their ids.
Candidates best_candidates(const PackedLinear& table, const PackedInput& x, int64_t per_row,
                           const std::vector<int32_t>& excluded, const Threads& threads);

}  // namespace lockstep
