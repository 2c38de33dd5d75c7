#include "models/bert.h"

#include <fmt/format.h>

#include "nn/embedding.h"
#include "nn/plain.h"

namespace lockstep {
namespace {

using torch::Tensor;

// Places of dropout, numbered within a layer; site 0 is for the embedded tokens, the one after the
// last layer's sites for the pooled tokens.
enum LayerSite { kWeights, kOutput, kDown, kLayerSites };
int64_t site_of(std::size_t layer, LayerSite site) {
  return 1 + static_cast<int64_t>(layer) * kLayerSites + site;
}

class Adder {
 public:
  Adder(Parameters& parameters, const BertShape& shape) : parameters_(parameters), shape_(shape) {}

  Linear linear(const std::string& name, int64_t out, int64_t in) {
    return {parameters_.add(name + ".weight", {out, in}, normal(shape_.initializer_range)),
            parameters_.add(name + ".bias", {out}, zeros())};
  }
  LayerNorm norm(const std::string& name) {
    return {parameters_.add(name + ".weight", {shape_.hidden_size}, ones()),
            parameters_.add(name + ".bias", {shape_.hidden_size}, zeros()), shape_.layer_norm_eps};
  }
  ParameterRef table(const std::string& name, int64_t rows) {
    return parameters_.add_table(name + ".weight", {rows, shape_.hidden_size},
                                 normal(shape_.initializer_range));
  }

 private:
  Parameters& parameters_;
  const BertShape& shape_;
};

}  // namespace

std::string check_shape(const BertShape& s) {
  if (s.hidden_size % s.num_attention_heads != 0) {
    return fmt::format("hidden_size {} does not divide into {} heads", s.hidden_size,
                       s.num_attention_heads);
  }
  return "";
}

PackedTexts pack_texts(const Tensor& tokens, const Tensor& types,
                       const std::vector<int32_t>& lengths, const Tensor& keys) {
  PackedTexts out{tokens, types, {}, {}, make_segments(lengths, tokens.device())};
  TORCH_CHECK(tokens.numel() == out.segments.tokens() && types.numel() == tokens.numel(),
              "tokens, types and lengths of texts do not match");
  const Tensor& places = out.segments.padded_rows;
  out.positions = places.remainder(out.segments.longest);
  if (!keys.defined()) return out;
  const Tensor text = places.floor_divide(out.segments.longest);
  out.rows = keys.index_select(0, text) * (int64_t{1} << 16) + out.positions;
  return out;
}

struct Bert::Pass {
  const BertForward& how;
  const PackedTexts& texts;
  Tensor first;       // int64 [texts]: rows of the first tokens
  Tensor first_keys;  // int64 [texts], keys of dropout; undefined when nothing is dropped

  Dropout dropout(int64_t site, double p, bool first_only) const {
    if (!first_keys.defined() || p == 0) return {};
    return {p, dropout_key(how.seed, how.step, site), first_only ? first_keys : texts.rows};
  }
};

Bert::Bert(const BertShape& shape, Parameters& parameters) : shape_(shape) {
  const std::string wrong = check_shape(shape);
  TORCH_CHECK(wrong.empty(), "BERT: ", wrong);
  Adder add(parameters, shape_);
  const int64_t d = shape.hidden_size;
  const auto spread = normal(shape.initializer_range);
  words_ = parameters.add_table("bert.embeddings.word_embeddings.weight", {shape.vocab_size, d},
                                [spread](Tensor& t, at::Generator& g) {
                                  spread(t, g);
                                  t.select(0, 0).zero_();  // [PAD]
                                });
  positions_ = add.table("bert.embeddings.position_embeddings", shape.max_position_embeddings);
  types_ = add.table("bert.embeddings.token_type_embeddings", shape.type_vocab_size);
  embedding_norm_ = add.norm("bert.embeddings.LayerNorm");
  for (int64_t i = 0; i < shape.num_hidden_layers; ++i) {
    const std::string name = fmt::format("bert.encoder.layer.{}.", i);
    BertLayer layer;
    layer.qkv = add.linear(name + "attention.self.qkv", 3 * d, d);
    layer.output = add.linear(name + "attention.output.dense", d, d);
    layer.attention_norm = add.norm(name + "attention.output.LayerNorm");
    layer.up = add.linear(name + "intermediate.dense", shape.intermediate_size, d);
    layer.down = add.linear(name + "output.dense", d, shape.intermediate_size);
    layer.norm = add.norm(name + "output.LayerNorm");
    layers_.push_back(std::move(layer));
  }
  pooler_ = add.linear("bert.pooler.dense", d, d);
  classifier_ = add.linear("classifier", shape.num_labels, d);
}

Tensor Bert::logits(const PackedTexts& texts, const BertForward& how) const {
  const Segments& segments = texts.segments;
  TORCH_CHECK(segments.longest <= shape_.max_position_embeddings, "BERT: a text of ",
              segments.longest, " tokens, at most ", shape_.max_position_embeddings);
  Pass pass{how, texts, first_rows(segments, texts.tokens.device()), {}};
  if (how.training) {
    TORCH_CHECK(texts.rows.defined(), "BERT: dropout needs a key a token");
    pass.first_keys = texts.rows.index_select(0, pass.first);
  }
  ResidualNorm x = embed_texts(pass);
  const std::size_t last = layers_.size() - 1;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    AttentionOptions options;
    options.heads = shape_.num_attention_heads;
    options.dropout =
        pass.dropout(site_of(i, kWeights), shape_.attention_probs_dropout_prob, i == last);
    const Tensor qkv = linear(x.normed, layers_[i].qkv, how.numerics);
    if (i < last) {
      x = finish_layer(i, x.stream, self_attention(qkv, segments, options, how.numerics), pass);
    } else {
      x = finish_layer(i, x.stream.index_select(0, pass.first),
                       first_token_attention(qkv, segments, options, how.numerics), pass);
    }
  }
  const Tensor pooled = linear(x.normed, pooler_, how.numerics).tanh();
  const double p = shape_.classifier_dropout.value_or(shape_.hidden_dropout_prob);
  const Dropout dropout = pass.dropout(site_of(last + 1, kWeights), p, true);
  return linear(detail::plain_dropout(pooled, dropout), classifier_, how.numerics);
}

ResidualNorm Bert::embed_texts(const Pass& pass) const {
  const PackedTexts& texts = pass.texts;
  const Numerics& numerics = pass.how.numerics;
  const int64_t longest = texts.segments.longest, d = shape_.hidden_size;
  // One table [types * longest, d] of the vectors that are added to a word's.
  const Tensor places =
      (types_->value.unsqueeze(1) + positions_->value.narrow(0, 0, longest).unsqueeze(0))
          .view({-1, d});
  const Tensor place = texts.types * longest + texts.positions;
  const Tensor sum = embed({texts.tokens, place, 1.0}, *words_, places, {}, numerics);
  Numerics exact = numerics;
  exact.compute = at::kFloat;
  const Tensor stream =
      embedding_dropout(layer_norm(sum, embedding_norm_, exact),
                        pass.dropout(0, shape_.hidden_dropout_prob, false), numerics);
  return {stream, stream.to(numerics.compute)};
}

ResidualNorm Bert::finish_layer(std::size_t index, const Tensor& stream, const Tensor& mixed,
                                const Pass& pass) const {
  const BertLayer& layer = layers_[index];
  const Numerics& numerics = pass.how.numerics;
  const bool first_only = index + 1 == layers_.size();
  auto dropout = [&](LayerSite site) {
    return pass.dropout(site_of(index, site), shape_.hidden_dropout_prob, first_only);
  };
  const ResidualNorm y = linear_residual_post_norm(stream, mixed, layer.output, dropout(kOutput),
                                                   layer.attention_norm, numerics);
  const Tensor inner = linear_gelu(y.normed, layer.up, {}, numerics);
  return linear_residual_post_norm(y.stream, inner, layer.down, dropout(kDown), layer.norm,
                                   numerics);
}

}  // namespace lockstep
