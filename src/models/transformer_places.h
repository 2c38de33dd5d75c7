// Where the weights of a Transformer stand in the files of transformers' encoder-decoder networks
// (Marian, Pegasus, M2M100): all but tables, positions and the output's bias.
#pragma once

#include <string>
#include <vector>

#include "models/weight_transfer.h"
#include "nn/parameters.h"

namespace lockstep {

// Attention biases are listed even if there are none.
std::vector<WeightPlace> transformer_places(const Parameters& parameters);

}  // namespace lockstep
