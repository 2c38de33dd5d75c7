// Prepares a Transformer's weights for inference on the CPU: every matrix, including the output
// table, is packed as fp32, bf16 or int8 (nn/packed_linear.h). Norms, biases, embeddings, softmax
// and the residual stream are always fp32; activations are fp32 or, with bf16 weights, bf16.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "models/transformer.h"
#include "nn/packed_linear.h"

namespace lockstep {

class PackedTransformer {
 public:
  // Copies the matrices of `model` and refers to its norms and its table, so `model` must outlive
  // this and must not be trained meanwhile. The ids `suppressed` have the probability 0.
  PackedTransformer(const Transformer& model, WeightFormat format,
                    const std::vector<int32_t>& suppressed = {});

  // Returns the encoder's output [source tokens, d_model] in the activation type.
  torch::Tensor encode(const PackedSentences& source) const;

  struct Attention {
    PackedLinear in, out;  // in: query | key | value, or the query alone
    PackedLinear memory;   // cross-attention: key | value of the encoder's output
  };
  struct FeedForward {
    PackedLinear up, down;
  };
  struct Layer {
    Attention self, cross;  // cross: in the decoder only
    FeedForward feed_forward;
  };

  const Transformer& model() const { return model_; }
  const std::vector<Layer>& decoder() const { return decoder_; }
  const PackedLinear& table() const { return table_; }
  at::ScalarType activations() const { return activation_type(format_); }
  int64_t bytes() const { return bytes_; }  // of the packed weights

  // The residual stream, and what the next block reads of it.
  struct Stream {
    torch::Tensor sum;     // fp32 [rows, d_model]
    torch::Tensor normed;  // [rows, d_model] in the activation type
  };
  // Returns table[ids] * embedding_scale() + positions, and what the block with the norm `first`
  // reads.
  struct Tokens {
    const Parameter& table;         // of the side
    const torch::Tensor& ids;       // int64 [tokens]
    const torch::Tensor& position;  // int64 [tokens]
    int64_t longest;                // above every position
  };
  Stream begin(const Tokens& tokens, const LayerNorm& first) const;
  // A block's own norm and that of the next one; the network's variant decides
  // which of them is used.
  struct Norms {
    const LayerNorm& own;
    const LayerNorm& next;
  };
  // Adds out(branch) to the stream in place, and prepares what the next block reads.
  void finish_block(Stream& x, const torch::Tensor& branch, const PackedLinear& out,
                    const Norms& norms) const;
  void feed_forward(Stream& x, const FeedForward& block, const Norms& norms) const;

 private:
  PackedLinear pack(const Linear& linear);
  torch::Tensor normalise(const torch::Tensor& sum, const LayerNorm& norm,
                          at::ScalarType type) const;
  void prepare_next(Stream& x, const Norms& norms) const;

  const Transformer& model_;
  WeightFormat format_;
  std::vector<Layer> encoder_, decoder_;
  PackedLinear table_;
  int64_t bytes_ = 0;
};

}  // namespace lockstep
