#include "decode/packed_transformer.h"

namespace lockstep {

int64_t PackedTransformer::bytes() const {
  int64_t total = output.bytes() + decoder_rows.bytes() + encoder_rows.bytes();
  for (const std::vector<Layer>* stack : {&encoder, &decoder}) {
    for (const Layer& layer : *stack) {
      total += layer.self.in.bytes() + layer.self.out.bytes();
      total += layer.feed_forward.up.bytes() + layer.feed_forward.down.bytes();
      if (stack == &encoder) continue;
      total += layer.cross.in.bytes() + layer.cross.out.bytes() + layer.cross.memory.bytes();
    }
  }
  return total;
}

}  // namespace lockstep
