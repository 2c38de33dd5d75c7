// Defines the Transformer (Vaswani et al. 2017), by default with layer normalisation first
// ("pre-norm"): every block is x + dropout(f(norm(x))), and each stack ends in a norm of its own.
// With norm = "post", as in the paper, a block is norm(x + dropout(f(x))) and no norm follows a
// stack.
//
// Differences from the paper: norm = "pre" is the default; the attention projections have biases
// unless attention_bias is false; dropout on attention weights and after the ReLU exists but is off
// by default. As in the paper, one table serves source, target and output (section 3.4), scaled by
// sqrt(d_model) at the input, and the output has no bias. Published models differ in these
// (PublishedVariant): their config.json says how.
//
// Sentences are packed (nn/segments.h): nothing is computed for padding, and the table has no row
// that is never trained.
#pragma once

#include <torch/types.h>

#include <mutex>
#include <string>
#include <vector>

#include "config/fields.h"
#include "nn/attention.h"
#include "nn/cross_entropy.h"
#include "nn/layer_norm.h"
#include "nn/linear.h"
#include "nn/linear_epilogues.h"
#include "nn/numerics.h"
#include "nn/parameters.h"
#include "nn/segments.h"

namespace lockstep {

// What only networks that others published have (models/published_model.h): no key sets it.
struct PublishedVariant {
  bool scale_embedding = true;    // by sqrt(d_model)
  bool own_source_table = false;  // the encoder embeds with a table of its own
  bool own_output_table = false;  // the logits have a table of their own
  bool output_bias = false;       // the logits have a bias, which is not trained
  int64_t first_position = 0;     // of a sentence's first token
  int64_t source_pieces = 0;      // rows of the encoder's own table
};

struct TransformerConfig {
  int64_t d_model = 256;
  int64_t heads = 4;
  int64_t encoder_layers = 3;
  int64_t decoder_layers = 3;
  int64_t feed_forward = 1024;
  double dropout = 0.1;  // of embeddings, and of each block before the sum (section 5.4)
  double attention_dropout = 0;
  double relu_dropout = 0;
  int64_t longest = 256;
  std::string norm = "pre";
  double norm_epsilon = 1e-5;
  bool attention_bias = true;
  std::string activation = "relu";
  std::string positions = "interleaved";
  std::string start = "bos";
  int64_t vocabulary_multiple = 1;
  PublishedVariant variant;

  void describe(Fields& f) {
    f("d_model", &d_model, AtLeast{2}, "width of embeddings and layers; even, divisible by heads");
    f("heads", &heads, AtLeast{1}, "attention heads");
    f("encoder_layers", &encoder_layers, AtLeast{1}, "layers of the encoder");
    f("decoder_layers", &decoder_layers, AtLeast{1}, "layers of the decoder");
    f("feed_forward", &feed_forward, AtLeast{1}, "inner width of the feed-forward blocks");
    f("dropout", &dropout, Between{0, 1}, "dropout of embeddings and residual branches");
    f("attention_dropout", &attention_dropout, Between{0, 1}, "dropout of attention weights");
    f("relu_dropout", &relu_dropout, Between{0, 1}, "dropout after the activation");
    f("longest", &longest, AtLeast{1}, "tokens whose positions are prepared; longer ones work");
    f("norm", &norm, OneOf{{"pre", "post"}}, "layer norm before each block, or after its sum");
    f("norm_epsilon", &norm_epsilon, Above{0}, "added to the variance in layer norms");
    f("attention_bias", &attention_bias, Any{}, "biases of query, key, value and their output");
    f("activation", &activation, OneOf{{"relu", "gelu", "silu"}},
      "inside the feed-forward blocks; silu is also called swish");
    f("positions", &positions, OneOf{{"interleaved", "halves", "paper_halves"}},
      "sine and cosine in turns, as the paper, or one half each: with the waves of Tensor2Tensor, "
      "or with the paper's, as Marian");
    f("start", &start, OneOf{{"bos", "zero"}},
      "the decoder's first input is <s>; or, as OpenSeq2Seq, a zero vector, whose output is <s>, "
      "and sources begin with <s> too");
    f("vocabulary_multiple", &vocabulary_multiple, AtLeast{1},
      "rows of the table are a multiple of this; those behind the last piece are never produced");
  }

  bool pre_norm() const { return norm == "pre"; }
  bool starts_with_zero() const { return start == "zero"; }

  // Throws ConfigError unless d_model is even, divisible by heads and wide enough for `positions`.
  void check() const;
};

// Returns the positions that such a network adds, fp32 [count, d_model]; row 0 is a sentence's
// first token.
torch::Tensor computed_positions(const TransformerConfig& config, int64_t count,
                                 torch::Device device = torch::kCPU);

// One side of a batch. Copies share the tensors.
struct PackedSentences {
  torch::Tensor tokens;     // int64 [tokens]
  torch::Tensor positions;  // int64 [tokens], from 0 in every sentence
  Segments segments;
  torch::Tensor rows;  // int64 [tokens]: keys of dropout (nn/dropout.h); read in training only
};

// Packs sentences of at least one token each; `rows` stays undefined.
PackedSentences pack_sentences(const std::vector<std::vector<int32_t>>& sentences,
                               torch::Device device);

// source = pieces, </s>; target = <s>, pieces. Sentence i of one side belongs to i of the other.
// With start = "zero": source = <s>, pieces, </s>; target = kZeroToken, <s>, pieces.
struct TranslationInput {
  PackedSentences source, target;
};

struct ForwardContext {
  bool training = false;  // dropout on
  Numerics numerics;
  uint64_t seed = 0;  // seed of the dropout masks, with `step`
  int64_t step = 0;
};

// The blocks. Sites number the places of dropout in the order of construction.
struct SelfAttentionBlock {
  LayerNorm norm;
  Linear qkv;  // [3 * d_model, d_model]: query | key | value
  Linear out;
  int64_t weights_site = 0, residual_site = 0;
};
struct CrossAttentionBlock {
  LayerNorm norm;
  Linear query;
  Linear memory;  // [2 * d_model, d_model]: key | value of the encoder's output
  Linear out;
  int64_t weights_site = 0, residual_site = 0;
};
struct FeedForwardBlock {
  LayerNorm norm;
  Linear up, down;
  int64_t relu_site = 0, residual_site = 0;
};
struct EncoderLayer {
  SelfAttentionBlock attention;
  FeedForwardBlock feed_forward;
};
struct DecoderLayer {
  SelfAttentionBlock attention;
  CrossAttentionBlock cross;
  FeedForwardBlock feed_forward;
};

class Transformer {
 public:
  // Adds the parameters, in this order (N counts layers from 0; all but norms also as .bias):
  //   embedding.weight                                    normal(0, d_model^-0.5)
  //   encoder.N.norm1, .attention.qkv, .attention.out     norms: ones and zeros
  //   encoder.N.norm2, .feed_forward.up, .feed_forward.down
  //   encoder.norm                                        with norm = "pre" only
  //   decoder.N.norm1, .attention.qkv, .attention.out     matrices: xavier_uniform, zero bias
  //   decoder.N.norm2, .cross.query, .cross.memory, .cross.out
  //   decoder.N.norm3, .feed_forward.up, .feed_forward.down
  //   decoder.norm                                        with norm = "pre" only
  // In total there are vocabulary * d + encoder_layers * (4 d^2 + 2 d f + 9 d + f)
  //   + decoder_layers * (8 d^2 + 2 d f + 15 d + f) + 4 d weights, d = d_model, f = feed_forward;
  //   4 d less for every attention without biases, 4 d less with norm = "post".
  // By the variant there are also source_embedding.weight and output.weight, behind the first, and
  // the buffer output.bias.
  // `vocabulary` is the number of `pieces` rounded up to config.vocabulary_multiple. The loss takes
  // its softmax over all of these (as OpenSeq2Seq does); decoding produces only the pieces.
  // The network can be used once parameters.allocate() has run. Throws ConfigError (check()).
  Transformer(const TransformerConfig& config, int64_t pieces, Parameters& parameters);
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  // Returns the decoder's output, [target tokens, d_model] in the compute type.
  torch::Tensor forward(const TranslationInput& input, const ForwardContext& context) const;

  // Returns the encoder's output, [source tokens, d_model] in the compute type.
  torch::Tensor encode(const PackedSentences& source, const ForwardContext& context) const;

  // hidden [rows, d_model] in the compute type -> fp32 [rows, vocabulary].
  torch::Tensor logits(const torch::Tensor& hidden, const Numerics& numerics) const;

  // Returns fp32 [at least `count`, d_model] on the device of the weights; row 0 is a sentence's
  // first token. Thread-safe.
  torch::Tensor positions(int64_t count) const;

  const TransformerConfig& config() const { return config_; }
  int64_t vocabulary() const { return table_->shape[0]; }  // rows of the table
  int64_t pieces() const { return pieces_; }               // rows that stand for a piece
  // The decoder's, and where nothing else is said also the encoder's and the output's.
  const Parameter& table() const { return *table_; }                // [vocabulary, d_model]
  const Parameter& source_table() const { return *source_table_; }  // [source pieces, d_model]
  const Parameter& output_table() const { return *output_table_; }  // [vocabulary, d_model]
  torch::Tensor output_bias() const;  // fp32 [vocabulary]; undefined: there is none
  OutputLayer output() const { return {*output_table_, output_bias()}; }
  double embedding_scale() const;
  const std::vector<EncoderLayer>& encoder() const { return encoder_; }
  const LayerNorm& encoder_norm() const { return encoder_norm_; }
  const std::vector<DecoderLayer>& decoder() const { return decoder_; }
  const LayerNorm& decoder_norm() const { return decoder_norm_; }  // null weights with post-norm
  torch::Device device() const { return table_->value.device(); }

  // Returns the norm of the block that follows; after the last layer, the stack's own norm.
  const LayerNorm& norm_after_decoder_layer(std::size_t layer) const;

  // Returns what the first block of a stack reads of embedded tokens, fp32 [tokens, d_model];
  // `first` is that block's norm.
  ResidualNorm begin_stack(torch::Tensor embedded, const LayerNorm& first,
                           const Numerics& numerics) const;

  // Ends a block: computes stream + dropout(out(branch)) and what the next block reads. With
  // pre-norm that is the `next` block's norm of the sum; with post-norm it is the stream itself,
  // which is this block's `own` norm of the sum. `rows` are keys of dropout, undefined outside
  // training. branch: [tokens, out's input].
  struct BlockEnd {
    const Linear& out;
    int64_t residual_site;
    const LayerNorm& own;
    const LayerNorm& next;
  };
  ResidualNorm finish_block(const ResidualNorm& x, const torch::Tensor& branch, const BlockEnd& end,
                            const torch::Tensor& rows, const ForwardContext& context) const;

  // Runs down(dropout(activation(up(x.normed)))) as a block of its own.
  struct FeedForwardEnd {
    const FeedForwardBlock& block;
    const LayerNorm& next;
  };
  ResidualNorm feed_forward(const FeedForwardEnd& block, const ResidualNorm& x,
                            const torch::Tensor& rows, const ForwardContext& context) const;

 private:
  LayerNorm add_norm(const std::string& name, Parameters& parameters) const;
  // Adds a projection of `parts` matrices [d, d], one below the other, without a bias unless
  // config.attention_bias.
  Linear add_projection(const std::string& name, int64_t parts, Parameters& parameters) const;
  SelfAttentionBlock add_self_attention(const std::string& layer, Parameters& parameters);
  CrossAttentionBlock add_cross_attention(const std::string& layer, Parameters& parameters);
  FeedForwardBlock add_feed_forward(const std::string& layer, const std::string& norm,
                                    Parameters& parameters);

  torch::Tensor embed_side(const PackedSentences& side, const Parameter& table, int64_t site,
                           const ForwardContext& context) const;
  // normed: what the block reads, [tokens, d_model] in the compute type -> the same shape.
  torch::Tensor attend_self(const SelfAttentionBlock& block, const torch::Tensor& normed,
                            const PackedSentences& side, bool causal,
                            const ForwardContext& context) const;
  torch::Tensor attend_memory(const CrossAttentionBlock& block, const torch::Tensor& normed,
                              const torch::Tensor& memory, const TranslationInput& input,
                              const ForwardContext& context) const;

  TransformerConfig config_;
  int64_t pieces_;
  int64_t sites_ = 0;
  ParameterRef table_, source_table_, output_table_;  // may be one
  BufferRef output_bias_;                             // null: none
  int64_t source_site_ = 0, target_site_ = 0;
  std::vector<EncoderLayer> encoder_;
  std::vector<DecoderLayer> decoder_;
  LayerNorm encoder_norm_, decoder_norm_;
  mutable std::mutex positions_mutex_;
  mutable torch::Tensor positions_;  // grows to the longest sentence seen
};

}  // namespace lockstep
