// Decoders of a Transformer, for searches.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "decode/decoder.h"
#include "decode/packed_transformer.h"
#include "models/transformer.h"
#include "nn/numerics.h"

namespace lockstep {

// The threads of libtorch. Inside of its parallel regions there is one.
const Threads& torch_threads();

// What decoders begin with, and what they leave out.
struct DecodingStart {
  // Tokens that every hypothesis begins with; their outputs are not looked at. Absent: none, or,
  // with start = "zero", kZeroToken.
  std::optional<std::vector<int64_t>> primer = {};
  // Ids whose probability is 0 before probabilities are normalised.
  std::vector<int32_t> suppressed = {};

  std::vector<int64_t> tokens(const TransformerConfig& config) const;
};

// Returns decoders with packed weights where `packed` is not null: our own kernels, on the CPU,
// with the start with which it was packed; else with the operations of training, on any device. The
// objects that it refers to must outlive it.
DecodingModel decoding_model(const Transformer& model, const Numerics& numerics,
                             const PackedTransformer* packed = nullptr,
                             const DecodingStart& start = {});

}  // namespace lockstep
