#include "models/decoder.h"

#include <ATen/Parallel.h>

#include "decode/packed_decoder.h"
#include "models/decoder_state.h"
#include "nn/embedding.h"

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

std::vector<int64_t> DecodingStart::tokens(const TransformerConfig& config) const {
  if (primer) return *primer;
  if (config.starts_with_zero()) return {kZeroToken};  // its output is <s>
  return {};
}

const Threads& torch_threads() {
  static const TorchThreads threads;
  return threads;
}

DecodingModel decoding_model(const Transformer& model, const Numerics& numerics,
                             const PackedTransformer* packed, const DecodingStart& start) {
  static const OneThread one;
  if (packed != nullptr) return packed_decoding(*packed, torch_threads());
  return {[&model, numerics, start](const Sentences& sources) {
            return std::make_unique<DecoderState>(model, sources, numerics,
                                                  start.tokens(model.config()), start.suppressed);
          },
          model.device().is_cpu() ? torch_threads() : one};
}

}  // namespace lockstep
