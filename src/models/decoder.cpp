#include "models/decoder.h"

#include "models/decoder_state.h"
#include "models/packed_decoder.h"

namespace lockstep {

std::unique_ptr<Decoder> make_decoder(const DecodingModel& model,
                                      const std::vector<std::vector<int32_t>>& sources) {
  if (model.packed != nullptr) return make_packed_decoder(*model.packed, sources);
  return std::make_unique<DecoderState>(model.model, sources, model.numerics);
}

}  // namespace lockstep
