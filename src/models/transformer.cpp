#include "models/transformer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "nn/embedding.h"
#include "nn/upload.h"

namespace lockstep {
namespace {

using torch::Tensor;

Linear add_linear(const std::string& name, int64_t out, int64_t in, Parameters& parameters) {
  Linear linear;
  linear.weight = parameters.add(name + ".weight", {out, in}, xavier_uniform());
  linear.bias = parameters.add(name + ".bias", {out}, zeros());
  return linear;
}

Dropout dropout_at(int64_t site, double p, const Tensor& rows, const ForwardContext& context) {
  if (!context.training || p == 0) return {};
  return {p, dropout_key(context.seed, context.step, site), rows};
}

}  // namespace

Tensor computed_positions(const TransformerConfig& config, int64_t count, torch::Device device) {
  const int64_t first = config.variant.first_position;
  return sinusoidal_positions(first + count, config.d_model, device,
                              position_layout(config.positions))
      .slice(0, first);
}

void TransformerConfig::check() const {
  if (d_model % heads != 0) {
    throw ConfigError("d_model: expected a multiple of heads ({}), got {}", heads, d_model);
  }
  if (d_model % 2 != 0) {
    throw ConfigError("d_model: expected an even number (sine and cosine of each position), got {}",
                      d_model);
  }
  if (positions == "halves" && d_model < 4) {
    throw ConfigError("d_model: expected at least 4 for positions = halves, got {}", d_model);
  }
}

PackedSentences pack_sentences(const std::vector<std::vector<int32_t>>& sentences,
                               torch::Device device) {
  std::vector<int32_t> lengths;
  int64_t total = 0;
  for (const std::vector<int32_t>& sentence : sentences) {
    lengths.push_back(static_cast<int32_t>(sentence.size()));
    total += lengths.back();
  }
  PackedSentences out;
  out.tokens = torch::empty({total}, torch::kInt64);
  out.positions = torch::empty({total}, torch::kInt64);
  int64_t* token = out.tokens.mutable_data_ptr<int64_t>();
  int64_t* position = out.positions.mutable_data_ptr<int64_t>();
  for (const std::vector<int32_t>& sentence : sentences) {
    for (std::size_t i = 0; i < sentence.size(); ++i) {
      *token++ = sentence[i];
      *position++ = static_cast<int64_t>(i);
    }
  }
  out.tokens = upload(out.tokens, device);
  out.positions = upload(out.positions, device);
  out.segments = make_segments(lengths, device);
  return out;
}

Transformer::Transformer(const TransformerConfig& config, int64_t pieces, Parameters& parameters)
    : config_(config), pieces_(pieces) {
  config_.check();
  const int64_t d = config_.d_model, multiple = config_.vocabulary_multiple;
  const int64_t vocabulary = (pieces + multiple - 1) / multiple * multiple;
  table_ = parameters.add_table("embedding.weight", {vocabulary, d},
                                normal(1 / std::sqrt(static_cast<double>(d))));
  const PublishedVariant& variant = config_.variant;
  const auto rows_of = normal(1 / std::sqrt(static_cast<double>(d)));
  source_table_ = output_table_ = table_;
  if (variant.own_source_table) {
    source_table_ =
        parameters.add_table("source_embedding.weight", {variant.source_pieces, d}, rows_of);
  }
  if (variant.own_output_table) {
    output_table_ = parameters.add("output.weight", {vocabulary, d}, rows_of);
  }
  if (variant.output_bias) output_bias_ = parameters.add_buffer("output.bias", {vocabulary}, 0);
  source_site_ = sites_++;
  target_site_ = sites_++;
  for (int64_t i = 0; i < config_.encoder_layers; ++i) {
    const std::string name = "encoder." + std::to_string(i);
    EncoderLayer layer;
    layer.attention = add_self_attention(name, parameters);
    layer.feed_forward = add_feed_forward(name, "norm2", parameters);
    encoder_.push_back(std::move(layer));
  }
  if (config_.pre_norm()) encoder_norm_ = add_norm("encoder.norm", parameters);
  for (int64_t i = 0; i < config_.decoder_layers; ++i) {
    const std::string name = "decoder." + std::to_string(i);
    DecoderLayer layer;
    layer.attention = add_self_attention(name, parameters);
    layer.cross = add_cross_attention(name, parameters);
    layer.feed_forward = add_feed_forward(name, "norm3", parameters);
    decoder_.push_back(std::move(layer));
  }
  if (config_.pre_norm()) decoder_norm_ = add_norm("decoder.norm", parameters);
}

LayerNorm Transformer::add_norm(const std::string& name, Parameters& parameters) const {
  LayerNorm norm;
  norm.weight = parameters.add(name + ".weight", {config_.d_model}, ones());
  norm.bias = parameters.add(name + ".bias", {config_.d_model}, zeros());
  norm.epsilon = config_.norm_epsilon;
  return norm;
}

Linear Transformer::add_projection(const std::string& name, int64_t parts,
                                   Parameters& parameters) const {
  const int64_t d = config_.d_model;
  Linear linear;
  linear.weight = parameters.add(name + ".weight", {parts * d, d}, xavier_uniform(parts));
  if (config_.attention_bias) linear.bias = parameters.add(name + ".bias", {parts * d}, zeros());
  return linear;
}

SelfAttentionBlock Transformer::add_self_attention(const std::string& layer,
                                                   Parameters& parameters) {
  SelfAttentionBlock block;
  block.norm = add_norm(layer + ".norm1", parameters);
  block.qkv = add_projection(layer + ".attention.qkv", 3, parameters);
  block.out = add_projection(layer + ".attention.out", 1, parameters);
  block.weights_site = sites_++;
  block.residual_site = sites_++;
  return block;
}

CrossAttentionBlock Transformer::add_cross_attention(const std::string& layer,
                                                     Parameters& parameters) {
  CrossAttentionBlock block;
  block.norm = add_norm(layer + ".norm2", parameters);
  block.query = add_projection(layer + ".cross.query", 1, parameters);
  block.memory = add_projection(layer + ".cross.memory", 2, parameters);
  block.out = add_projection(layer + ".cross.out", 1, parameters);
  block.weights_site = sites_++;
  block.residual_site = sites_++;
  return block;
}

FeedForwardBlock Transformer::add_feed_forward(const std::string& layer, const std::string& norm,
                                               Parameters& parameters) {
  const int64_t d = config_.d_model, f = config_.feed_forward;
  FeedForwardBlock block;
  block.norm = add_norm(layer + "." + norm, parameters);
  block.up = add_linear(layer + ".feed_forward.up", f, d, parameters);
  block.down = add_linear(layer + ".feed_forward.down", d, f, parameters);
  block.relu_site = sites_++;
  block.residual_site = sites_++;
  return block;
}

Tensor Transformer::forward(const TranslationInput& input, const ForwardContext& context) const {
  const Tensor memory = encode(input.source, context);
  const PackedSentences& target = input.target;
  ResidualNorm x = begin_stack(embed_side(target, *table_, target_site_, context),
                               decoder_.front().attention.norm, context.numerics);
  for (std::size_t i = 0; i < decoder_.size(); ++i) {
    const auto& [self, cross, inner] = decoder_[i];
    const Tensor own = attend_self(self, x.normed, target, true, context);
    x = finish_block(x, own, {self.out, self.residual_site, self.norm, cross.norm}, target.rows,
                     context);
    const Tensor other = attend_memory(cross, x.normed, memory, input, context);
    x = finish_block(x, other, {cross.out, cross.residual_site, cross.norm, inner.norm},
                     target.rows, context);
    x = feed_forward({inner, norm_after_decoder_layer(i)}, x, target.rows, context);
  }
  return x.normed;
}

Tensor Transformer::encode(const PackedSentences& source, const ForwardContext& context) const {
  ResidualNorm x = begin_stack(embed_side(source, *source_table_, source_site_, context),
                               encoder_.front().attention.norm, context.numerics);
  for (std::size_t i = 0; i < encoder_.size(); ++i) {
    const auto& [self, inner] = encoder_[i];
    const LayerNorm& next =
        i + 1 < encoder_.size() ? encoder_[i + 1].attention.norm : encoder_norm_;
    const Tensor own = attend_self(self, x.normed, source, false, context);
    x = finish_block(x, own, {self.out, self.residual_site, self.norm, inner.norm}, source.rows,
                     context);
    x = feed_forward({inner, next}, x, source.rows, context);
  }
  return x.normed;
}

const LayerNorm& Transformer::norm_after_decoder_layer(std::size_t layer) const {
  return layer + 1 < decoder_.size() ? decoder_[layer + 1].attention.norm : decoder_norm_;
}

Tensor Transformer::embed_side(const PackedSentences& side, const Parameter& table, int64_t site,
                               const ForwardContext& context) const {
  return embed({side.tokens, side.positions, embedding_scale()}, table,
               positions(side.segments.longest),
               dropout_at(site, config_.dropout, side.rows, context), context.numerics);
}

Tensor Transformer::attend_self(const SelfAttentionBlock& block, const Tensor& normed,
                                const PackedSentences& side, bool causal,
                                const ForwardContext& context) const {
  AttentionOptions options;
  options.heads = config_.heads;
  options.causal = causal;
  options.dropout = dropout_at(block.weights_site, config_.attention_dropout, side.rows, context);
  const Tensor qkv = linear(normed, block.qkv, context.numerics);
  return self_attention(qkv, side.segments, options, context.numerics);
}

Tensor Transformer::attend_memory(const CrossAttentionBlock& block, const Tensor& normed,
                                  const Tensor& memory, const TranslationInput& input,
                                  const ForwardContext& context) const {
  AttentionOptions options;
  options.heads = config_.heads;
  options.dropout =
      dropout_at(block.weights_site, config_.attention_dropout, input.target.rows, context);
  const Tensor query = linear(normed, block.query, context.numerics);
  const Tensor key_value = linear(memory, block.memory, context.numerics);
  return cross_attention(query, key_value, input.target.segments, input.source.segments, options,
                         context.numerics);
}

ResidualNorm Transformer::feed_forward(const FeedForwardEnd& block, const ResidualNorm& x,
                                       const Tensor& rows, const ForwardContext& context) const {
  const FeedForwardBlock& b = block.block;
  const Dropout dropout = dropout_at(b.relu_site, config_.relu_dropout, rows, context);
  const auto activated = config_.activation == "gelu"   ? linear_gelu
                         : config_.activation == "silu" ? linear_silu
                                                        : linear_relu;
  const Tensor inner = activated(x.normed, b.up, dropout, context.numerics);
  return finish_block(x, inner, {b.down, b.residual_site, b.norm, block.next}, rows, context);
}

ResidualNorm Transformer::finish_block(const ResidualNorm& x, const Tensor& branch,
                                       const BlockEnd& end, const Tensor& rows,
                                       const ForwardContext& context) const {
  const Dropout dropout = dropout_at(end.residual_site, config_.dropout, rows, context);
  return config_.pre_norm()
             ? linear_residual_norm(x.stream, branch, end.out, dropout, end.next, context.numerics)
             : linear_residual_post_norm(x.stream, branch, end.out, dropout, end.own,
                                         context.numerics);
}

ResidualNorm Transformer::begin_stack(Tensor embedded, const LayerNorm& first,
                                      const Numerics& numerics) const {
  Tensor read =
      config_.pre_norm() ? layer_norm(embedded, first, numerics) : embedded.to(numerics.compute);
  return {std::move(embedded), std::move(read)};
}

Tensor Transformer::logits(const Tensor& hidden, const Numerics& numerics) const {
  const Tensor product = linear(hidden, {output_table_, nullptr}, numerics).to(torch::kFloat);
  const Tensor bias = output_bias();
  return bias.defined() ? product + bias : product;
}

Tensor Transformer::output_bias() const {
  return output_bias_ == nullptr ? Tensor() : output_bias_->value;
}

double Transformer::embedding_scale() const {
  return config_.variant.scale_embedding ? std::sqrt(static_cast<double>(config_.d_model)) : 1.0;
}

Tensor Transformer::positions(int64_t count) const {
  std::lock_guard lock(positions_mutex_);
  if (!positions_.defined() || positions_.size(0) < count) {
    // Not in inference mode: the table outlives a translation and is read in training as well.
    c10::InferenceMode off(false);
    const int64_t prepared = positions_.defined() ? 2 * positions_.size(0) : config_.longest;
    positions_ = computed_positions(config_, std::max(count, prepared), device());
  }
  return positions_;
}

}  // namespace lockstep
