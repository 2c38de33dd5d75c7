#include "models/decoder.h"

#include "models/decoder_state.h"
#include "models/packed_decoder.h"
#include "nn/embedding.h"

namespace lockstep {

std::unique_ptr<Decoder> make_decoder(const DecodingModel& model,
                                      const std::vector<std::vector<int32_t>>& sources) {
  std::vector<int64_t> primer;
  if (model.model.config().starts_with_zero()) primer = {kZeroToken};  // its output is <s>
  if (model.primer) primer = *model.primer;
  if (model.packed != nullptr) return make_packed_decoder(*model.packed, sources, primer);
  return std::make_unique<DecoderState>(model.model, sources, model.numerics, primer,
                                        model.suppressed);
}

}  // namespace lockstep
