#include "models/packed_transformer.h"

#include "nn/fused.h"

namespace lockstep {

using torch::Tensor;

namespace {

// Returns the output's bias for the ids that are pieces; undefined where there is none.
Tensor packed_bias(const Transformer& model, const std::vector<int32_t>& suppressed) {
  constexpr float kNeverBias = -1e30f;
  Tensor bias = model.output_bias();
  if (bias.defined()) bias = bias.narrow(0, 0, model.pieces());
  if (suppressed.empty()) return bias;
  bias = bias.defined() ? bias.clone() : torch::zeros({model.pieces()});
  for (int32_t id : suppressed) bias[id] = kNeverBias;
  return bias;
}

}  // namespace

PackedTransformer::PackedTransformer(const Transformer& model, WeightFormat format,
                                     const std::vector<int32_t>& suppressed)
    : model_(model), format_(format) {
  for (const EncoderLayer& layer : model.encoder()) {
    Layer packed;
    packed.self = {pack(layer.attention.qkv), pack(layer.attention.out), {}};
    packed.feed_forward = {pack(layer.feed_forward.up), pack(layer.feed_forward.down)};
    encoder_.push_back(std::move(packed));
  }
  for (const DecoderLayer& layer : model.decoder()) {
    Layer packed;
    packed.self = {pack(layer.attention.qkv), pack(layer.attention.out), {}};
    packed.cross = {pack(layer.cross.query), pack(layer.cross.out), pack(layer.cross.memory)};
    packed.feed_forward = {pack(layer.feed_forward.up), pack(layer.feed_forward.down)};
    decoder_.push_back(std::move(packed));
  }
  table_ = PackedLinear(model.output_table().value.detach().narrow(0, 0, model.pieces()),
                        packed_bias(model, suppressed), format);
  bytes_ += table_.bytes();
}

PackedLinear PackedTransformer::pack(const Linear& linear) {
  PackedLinear packed(linear.weight->value, linear.bias ? linear.bias->value.detach() : Tensor(),
                      format_);
  bytes_ += packed.bytes();
  return packed;
}

Tensor PackedTransformer::normalise(const Tensor& sum, const LayerNorm& norm,
                                    at::ScalarType type) const {
  const int64_t rows = sum.size(0), width = sum.size(1);
  const Tensor out = torch::empty({rows, width}, type);
  const Tensor statistics = torch::empty({2, rows}, torch::kFloat);
  detail::with_type(type, [&](auto zero) {
    using T = decltype(zero);
    const LayerNormArgs<T> args{detail::pointer<float>(sum),
                                detail::pointer<float>(norm.weight->value),
                                detail::pointer<float>(norm.bias->value),
                                detail::pointer<T>(out),
                                detail::pointer<float>(statistics),
                                detail::pointer<float>(statistics) + rows,
                                width,
                                static_cast<float>(norm.epsilon)};
    const auto kernel = kernels().typed<T>().layer_norm;
    detail::parallel_rows(rows, width,
                          [&](int64_t begin, int64_t end) { kernel(args, begin, end); });
  });
  return out;
}

PackedTransformer::Stream PackedTransformer::begin(const Tokens& tokens,
                                                   const LayerNorm& first) const {
  const Tensor& table = tokens.table.value;
  const Tensor signal = model_.positions(tokens.longest);
  const int64_t rows = tokens.ids.size(0), width = table.size(1);
  Stream x;
  x.sum = torch::empty({rows, width}, torch::kFloat);
  const EmbeddingArgs args{
      tokens.ids.const_data_ptr<int64_t>(),         tokens.position.const_data_ptr<int64_t>(),
      detail::pointer<float>(table),                detail::pointer<float>(signal),
      detail::pointer<float>(x.sum),                width,
      static_cast<float>(model_.embedding_scale()), {}};
  kernels().embedding(args, 0, rows);
  x.normed =
      model_.config().pre_norm() ? normalise(x.sum, first, activations()) : x.sum.to(activations());
  return x;
}

void PackedTransformer::prepare_next(Stream& x, const Norms& norms) const {
  if (model_.config().pre_norm()) {
    x.normed = normalise(x.sum, norms.next, activations());
    return;
  }
  x.sum = normalise(x.sum, norms.own, torch::kFloat);
  x.normed = x.sum.to(activations());
}

void PackedTransformer::finish_block(Stream& x, const Tensor& branch, const PackedLinear& out,
                                     const Norms& norms) const {
  // With fp32 post-norm, `branch` was made from the stream itself, which is no longer read.
  out.add_to(x.sum, branch);
  prepare_next(x, norms);
}

void PackedTransformer::feed_forward(Stream& x, const FeedForward& block,
                                     const Norms& norms) const {
  const std::string& activation = model_.config().activation;
  Tensor inner = block.up.store(block.up.prepare(x.normed), activation == "relu");
  if (activation == "gelu") inner = at::gelu(inner);
  if (activation == "silu") inner = at::silu(inner);
  finish_block(x, inner, block.down, norms);
}

Tensor PackedTransformer::encode(const PackedSentences& source) const {
  const std::vector<EncoderLayer>& layers = model_.encoder();
  AttentionOptions options;
  options.heads = model_.config().heads;
  Numerics numerics;
  numerics.compute = activations();
  Stream x =
      begin({model_.source_table(), source.tokens, source.positions, source.segments.longest},
            layers.front().attention.norm);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Tensor qkv = encoder_[i].self.in(x.normed);
    const Tensor mixed = self_attention(qkv, source.segments, options, numerics);
    const LayerNorm& after =
        i + 1 < layers.size() ? layers[i + 1].attention.norm : model_.encoder_norm();
    finish_block(x, mixed, encoder_[i].self.out,
                 {layers[i].attention.norm, layers[i].feed_forward.norm});
    feed_forward(x, encoder_[i].feed_forward, {layers[i].feed_forward.norm, after});
  }
  return x.normed;
}

}  // namespace lockstep
