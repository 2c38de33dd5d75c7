#include "models/decoder.h"

#include <ATen/Parallel.h>

#include "decode/packed_decoder.h"
#include "models/decoder_state.h"

namespace lockstep {
namespace {

class TorchThreads : public Threads {
 public:
  int64_t count() const override { return at::get_num_threads(); }

 protected:
  void divide(int64_t begin, int64_t end, int64_t grain, const Part& f) const override {
    at::parallel_for(begin, end, grain, f);
  }
};

}  // namespace

const Threads& torch_threads() {
  static const TorchThreads threads;
  return threads;
}

DecodingModel decoding_model(const Transformer& model, const Numerics& numerics,
                             const PackedTransformer* packed) {
  static const OneThread one;
  if (packed != nullptr) return packed_decoding(*packed, torch_threads());
  return {[&model, numerics](const Sentences& sources) {
            return std::make_unique<DecoderState>(model, sources, numerics);
          },
          model.device().is_cpu() ? torch_threads() : one};
}

}  // namespace lockstep
