// Defines BERT (Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for
// Language Understanding") with a classifier on the pooled first token. It takes single texts and
// pairs of any length, and with one label it predicts a number instead of a class. Settings and
// names of weights are those of transformers' BertForSequenceClassification, except that query, key
// and value are one matrix: bert.encoder.layer.N.attention.self.qkv, [3 * hidden_size,
// hidden_size].
//
// Texts are packed without padding (nn/segments.h). After the attention of the last layer only the
// first token of each text is computed, because the pooler reads nothing else.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nn/attention.h"
#include "nn/layer_norm.h"
#include "nn/linear.h"
#include "nn/linear_epilogues.h"
#include "nn/segments.h"

namespace lockstep {

// The settings, named as in config.json; the defaults are those of BERT-base.
struct BertShape {
  int64_t vocab_size = 30522;
  int64_t hidden_size = 768;
  int64_t num_hidden_layers = 12;
  int64_t num_attention_heads = 12;
  int64_t intermediate_size = 3072;
  int64_t max_position_embeddings = 512;
  int64_t type_vocab_size = 2;
  double layer_norm_eps = 1e-12;
  double initializer_range = 0.02;
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  std::optional<double> classifier_dropout = {};  // absent: hidden_dropout_prob
  int64_t num_labels = 2;                         // 1: predicts a number
};

// Returns what is wrong with the shape; empty when nothing is.
std::string check_shape(const BertShape& shape);

// Texts stored one after the other: [CLS] words [SEP], or [CLS] words [SEP] words [SEP].
struct PackedTexts {
  torch::Tensor tokens;     // int64 [tokens]
  torch::Tensor types;      // int64 [tokens]: 0, and 1 in the second text of a pair
  torch::Tensor positions;  // int64 [tokens], within the text
  torch::Tensor rows;       // int64 [tokens], keys of dropout; undefined: no dropout is possible
  Segments segments;
};

// `tokens` and `types` as above; `lengths` of the texts, each at least 1. `keys`, int64 [texts],
// identify the texts for dropout, whatever batch they are in; may be undefined.
PackedTexts pack_texts(const torch::Tensor& tokens, const torch::Tensor& types,
                       const std::vector<int32_t>& lengths, const torch::Tensor& keys = {});

struct BertForward {
  Numerics numerics;
  bool training = false;  // dropout on: the texts need `rows`
  uint64_t seed = 1;      // seed of dropout, with `step`
  int64_t step = 0;
};

struct BertLayer {
  Linear qkv, output;
  LayerNorm attention_norm;
  Linear up, down;
  LayerNorm norm;
};

class Bert {
 public:
  // Adds the weights in the order of transformers: bert.embeddings, bert.encoder.layer.N,
  // bert.pooler.dense, classifier. They are initialised as in transformers: matrices and tables
  // normal(initializer_range), the vector of [PAD] 0, biases 0.
  Bert(const BertShape& shape, Parameters& parameters);
  Bert(const Bert&) = delete;
  Bert& operator=(const Bert&) = delete;

  // Returns [texts, num_labels] in the compute type. TORCH_CHECK fails for a text longer than
  // max_position_embeddings.
  torch::Tensor logits(const PackedTexts& texts, const BertForward& how) const;

  const BertShape& shape() const { return shape_; }

 private:
  struct Pass;

  // Returns the stream in fp32 and in the compute type, [tokens, hidden_size] each.
  ResidualNorm embed_texts(const Pass& pass) const;
  // Computes a layer after its attention `mixed`, for all tokens or only for the
  // first ones of the texts.
  ResidualNorm finish_layer(std::size_t index, const torch::Tensor& stream,
                            const torch::Tensor& mixed, const Pass& pass) const;

  BertShape shape_;
  ParameterRef words_, positions_, types_;
  LayerNorm embedding_norm_;
  std::vector<BertLayer> layers_;
  Linear pooler_, classifier_;
};

}  // namespace lockstep
