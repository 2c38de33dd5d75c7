// Finds the most likely next tokens with libtorch's operations, on any device. It is the reference
// for what decodes with packed weights (decode/candidates.h).
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "decode/candidates.h"

namespace lockstep {

// Normalises log-probabilities over the whole vocabulary, then leaves out the `excluded` ids.
// logits [rows, vocabulary], on any device and of any type.
Candidates best_candidates(const torch::Tensor& logits, int64_t per_row,
                           const std::vector<int32_t>& excluded);

}  // namespace lockstep
