#include "models/decoder_state.h"

#include <numeric>
#include <utility>

#include "models/candidates.h"
#include "nn/embedding.h"
#include "nn/plain.h"
#include "nn/upload.h"

namespace lockstep {

using torch::Tensor;

DecoderState::DecoderState(const Transformer& model,
                           const std::vector<std::vector<int32_t>>& sources,
                           const Numerics& numerics, const std::vector<int64_t>& primer,
                           const std::vector<int32_t>& suppressed)
    : model_(model),
      numerics_(numerics),
      suppressed_(upload(torch::tensor(suppressed, torch::kInt64), model.device())),
      rows_(static_cast<int64_t>(sources.size())) {
  c10::InferenceMode inference;
  const PackedSentences source = pack_sentences(sources, model.device());
  ForwardContext context;
  context.numerics = numerics;
  const Tensor encoded = model.encode(source, context);
  DecoderMemory memory{model.config().heads, source.segments, {}};
  for (const DecoderLayer& layer : model.decoder()) {
    memory.key_value.push_back(linear(encoded, layer.cross.memory, numerics));
  }
  cache_ = make_padded_cache(memory);
  for (int64_t token : primer) step(std::vector<int64_t>(sources.size(), token));
  length_ = 0;
}

void DecoderState::step(const std::vector<int64_t>& newest) {
  c10::InferenceMode inference;
  TORCH_CHECK(std::ssize(newest) == rows_, newest.size(), " tokens for ", rows_, " rows");
  const Tensor tokens = upload(torch::tensor(newest, torch::kInt64), model_.device());
  const int64_t place = positions_++;
  const Tensor position = torch::full_like(tokens, place);
  Tensor start = embed({tokens, position, model_.embedding_scale()}, model_.table(),
                       model_.positions(place + 1), {}, numerics_);
  ForwardContext context;
  context.numerics = numerics_;
  const std::vector<DecoderLayer>& layers = model_.decoder();
  ResidualNorm x = model_.begin_stack(std::move(start), layers.front().attention.norm, numerics_);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto& [self, cross, inner] = layers[i];
    const Tensor own = cache_->attend_self(i, linear(x.normed, self.qkv, numerics_));
    x = model_.finish_block(x, own, {self.out, 0, self.norm, cross.norm}, {}, context);
    const Tensor other = cache_->attend_memory(i, linear(x.normed, cross.query, numerics_));
    x = model_.finish_block(x, other, {cross.out, 0, cross.norm, inner.norm}, {}, context);
    x = model_.feed_forward({inner, model_.norm_after_decoder_layer(i)}, x, {}, context);
  }
  ++length_;
  output_ = x.normed;
}

Candidates DecoderState::best(int64_t per_row, const std::vector<int32_t>& excluded) {
  c10::InferenceMode inference;
  return best_candidates(normalised_logits(output_), per_row, excluded);
}

std::vector<float> DecoderState::logits() {
  c10::InferenceMode inference;
  const Tensor all = normalised_logits(output_).cpu().contiguous();
  const float* first = all.const_data_ptr<float>();
  return {first, first + all.numel()};
}

Tensor DecoderState::normalised_logits(const Tensor& output) const {
  constexpr float kSuppressedLogit = -1e30f;
  Tensor out = model_.logits(output, numerics_).narrow(1, 0, model_.pieces());
  if (suppressed_.numel() > 0) out.index_fill_(1, suppressed_, kSuppressedLogit);
  return out;
}

void DecoderState::select(const std::vector<int32_t>& rows) {
  c10::InferenceMode inference;
  std::vector<int32_t> same(static_cast<std::size_t>(rows_));
  std::iota(same.begin(), same.end(), 0);
  if (rows == same) return;
  cache_->select(rows);
  rows_ = static_cast<int64_t>(rows.size());
}

}  // namespace lockstep
