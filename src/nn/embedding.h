// Embeds tokens, with sinusoidal (Vaswani et al. 2017, sections 3.4 and 3.5) or learned positions.
#pragma once

#include <torch/types.h>

#include <optional>

#include "decode/positions.h"
#include "kernels/kernel_table.h"
#include "nn/dropout.h"
#include "nn/numerics.h"
#include "nn/parameters.h"

namespace lockstep {

// Returns fp32 [longest, width].
torch::Tensor sinusoidal_positions(int64_t longest, int64_t width, torch::Device device,
                                   PositionLayout layout = PositionLayout::kInterleaved);

// dropout(table[tokens] * scale + positions[position]) -> fp32 [tokens, width]. tokens, position
// int64 [tokens]; table [vocabulary, width]; positions fp32 [longest, width], which get a gradient
// if they require one. The token kZeroToken has a vector of zeros instead of a row of the table.
// Always reads the fp32 table. The fused path adds its gradient in place, touching only the rows of
// the tokens that occur, in an order that does not depend on the number of threads.
struct EmbeddingInput {
  torch::Tensor tokens, position;
  std::optional<double> scale = {};  // absent: sqrt(width)
};
torch::Tensor embed(const EmbeddingInput& input, const Parameter& table,
                    const torch::Tensor& positions, const Dropout& dropout,
                    const Numerics& numerics);

// dropout(x) for x fp32 [tokens, width], used when a norm comes between the sum and the dropout.
torch::Tensor embedding_dropout(const torch::Tensor& x, const Dropout& dropout,
                                const Numerics& numerics);

}  // namespace lockstep
