// Makes the decoder that reads packed weights.
#pragma once

#include <memory>
#include <vector>

#include "models/decoder.h"

namespace lockstep {

std::unique_ptr<Decoder> make_packed_decoder(const PackedTransformer& packed,
                                             const std::vector<std::vector<int32_t>>& sources,
                                             const std::vector<int64_t>& primer);

}  // namespace lockstep
