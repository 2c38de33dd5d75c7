// Token embedding with sinusoidal positions (Vaswani et al. 2017, sections 3.4 and 3.5).
#pragma once

#include <torch/types.h>

#include "nn/dropout.h"
#include "nn/numerics.h"
#include "nn/parameters.h"

namespace lockstep {

// fp32 [longest, width]: PE(pos, 2i) = sin(pos / 10000^(2i/width)), PE(pos, 2i+1) = cos(same).
torch::Tensor sinusoidal_positions(int64_t longest, int64_t width, torch::Device device);

// dropout(table[tokens] * sqrt(width) + positions[position]) -> fp32 [tokens, width].
// tokens, position int64 [tokens]; table [vocabulary, width]; positions fp32 [longest, width].
// Reads the fp32 table always. The fused path adds its gradient in place, touching only the rows
// of the tokens that occur, in an order that does not depend on the number of threads.
struct EmbeddingInput {
  torch::Tensor tokens, position;
};
torch::Tensor embed(const EmbeddingInput& input, const Parameter& table,
                    const torch::Tensor& positions, const Dropout& dropout,
                    const Numerics& numerics);

}  // namespace lockstep
