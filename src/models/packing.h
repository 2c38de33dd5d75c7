// Packs a Transformer's weights for decoding on the CPU.
#pragma once

#include <string>

#include "decode/packed_transformer.h"
#include "models/decoder.h"
#include "models/transformer.h"

namespace lockstep {

// Of "fp32", "bf16" or "int8".
WeightFormat weight_format(const std::string& precision);

// Copies the matrices of `model` and refers to its norms and its table, so `model` must outlive the
// result and must not be trained meanwhile.
PackedTransformer pack_transformer(const Transformer& model, WeightFormat format,
                                   const DecodingStart& start = {});

// Packs a table for embedding: a copy.
PackedLinear pack_table(const Parameter& table, WeightFormat format);

}  // namespace lockstep
