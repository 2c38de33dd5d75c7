#include "models/decoder_state.h"

#include <numeric>
#include <utility>

#include "nn/embedding.h"
#include "nn/plain.h"

namespace lockstep {

using torch::Tensor;

DecoderState::DecoderState(const Transformer& model,
                           const std::vector<std::vector<int32_t>>& sources,
                           const Numerics& numerics)
    : model_(model), numerics_(numerics), rows_(static_cast<int64_t>(sources.size())) {
  c10::InferenceMode inference;
  const PackedSentences source = pack_sentences(sources, model.device());
  ForwardContext context;
  context.numerics = numerics;
  const Tensor encoded = model.encode(source, context);
  DecoderMemory memory{model.config().heads, source.segments, {}};
  for (const DecoderLayer& layer : model.decoder()) {
    memory.key_value.push_back(linear(encoded, layer.cross.memory, numerics));
  }
  const bool packed = detail::runs_fused(numerics, encoded);
  cache_ = packed ? make_packed_cache(std::move(memory)) : make_padded_cache(std::move(memory));
}

Tensor DecoderState::step(const Tensor& tokens) {
  c10::InferenceMode inference;
  TORCH_CHECK(tokens.size(0) == rows_, tokens.size(0), " tokens for ", rows_, " rows");
  const Tensor position = torch::full_like(tokens, length_);
  Tensor x =
      embed({tokens, position}, model_.table(), model_.positions(length_ + 1), {}, numerics_);
  ForwardContext context;
  context.numerics = numerics_;
  for (std::size_t i = 0; i < model_.decoder().size(); ++i) {
    const DecoderLayer& layer = model_.decoder()[i];
    const SelfAttentionBlock& self = layer.attention;
    const Tensor qkv = linear(layer_norm(x, self.norm, numerics_), self.qkv, numerics_);
    x = add_dropout(x, linear(cache_->attend_self(i, qkv), self.out, numerics_), {}, numerics_);
    const CrossAttentionBlock& cross = layer.cross;
    const Tensor query = linear(layer_norm(x, cross.norm, numerics_), cross.query, numerics_);
    x = add_dropout(x, linear(cache_->attend_memory(i, query), cross.out, numerics_), {},
                    numerics_);
    x = model_.feed_forward(layer.feed_forward, x, {}, context);
  }
  ++length_;
  return layer_norm(x, model_.decoder_norm(), numerics_);
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
