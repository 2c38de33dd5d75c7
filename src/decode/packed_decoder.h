// Decodes with packed weights on the CPU.
#pragma once

#include <memory>

#include "decode/decoder.h"
#include "decode/packed_transformer.h"

namespace lockstep {

// Both outlive the decoder.
std::unique_ptr<Decoder> make_packed_decoder(const PackedTransformer& model,
                                             const Sentences& sources, const Threads& threads);
// Decoders of that kind, for searches.
DecodingModel packed_decoding(const PackedTransformer& model, const Threads& threads);

}  // namespace lockstep
