// Decoders of a Transformer, for searches.
#pragma once

#include "decode/decoder.h"
#include "decode/packed_transformer.h"
#include "models/transformer.h"
#include "nn/numerics.h"

namespace lockstep {

// The threads of libtorch. Inside of its parallel regions there is one.
const Threads& torch_threads();

// Returns decoders with packed weights where `packed` is not null: our own kernels, on the CPU;
// else with the operations of training, on any device. The objects that it refers to must outlive
// it.
DecodingModel decoding_model(const Transformer& model, const Numerics& numerics,
                             const PackedTransformer* packed = nullptr);

}  // namespace lockstep
