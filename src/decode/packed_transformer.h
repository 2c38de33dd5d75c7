// A Transformer (models/transformer.h) as it decodes on the CPU: every matrix packed as fp32, bf16
// or int8 (decode/packed_linear.h). Norms, biases, softmax and the residual stream are always fp32;
// activations are fp32 or, with bf16 weights, bf16.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "decode/packed_linear.h"
#include "decode/positions.h"

namespace lockstep {

// What the network computes besides its weights; the keys of [model] have the names.
struct DecodingShape {
  int64_t d_model = 0, heads = 0;
  int64_t encoder_layers = 0, decoder_layers = 0, feed_forward = 0;
  int64_t pieces = 0;  // outputs of the table
  bool pre_norm = true;
  std::string activation = "relu";
  double norm_epsilon = 1e-5;
  float embedding_scale = 1;
  // Tokens that the decoder reads before all others; their outputs are not looked at.
  std::vector<int64_t> primer;
};

// Layer norm: fp32 [d_model] each. Null for the norm that a post-norm stack does not end in.
struct PackedNorm {
  const float* weight = nullptr;
  const float* bias = nullptr;
};

// The rows that a side embeds its tokens with: fp32 [rows, d_model], or as they are packed.
struct EmbeddingTable {
  const float* values = nullptr;
  const PackedLinear* packed = nullptr;  // read where there are no values
};

// Refers to norms and embeddings that outlive it.
struct PackedTransformer {
  struct Attention {
    PackedNorm norm;
    PackedLinear in, out;  // in: query | key | value, or the query alone
    PackedLinear memory;   // cross-attention: key | value of the encoder's output
  };
  struct FeedForward {
    PackedNorm norm;
    PackedLinear up, down;
  };
  struct Layer {
    Attention self, cross;  // cross: in the decoder only
    FeedForward feed_forward;
  };

  DecodingShape shape;
  std::vector<Layer> encoder, decoder;
  PackedNorm encoder_norm, decoder_norm;
  PackedLinear output;  // the table
  // fp32 [pieces or more, d_model]; null: the packed rows below.
  const float* embedding = nullptr;
  const float* source_embedding = nullptr;
  // Rows that a side has for itself; without outputs: the encoder embeds as the decoder, the
  // decoder with the rows of `output`.
  PackedLinear decoder_rows, encoder_rows;
  std::function<PositionRows(int64_t count)> positions;  // thread-safe

  EmbeddingTable decoder_table() const {
    return {embedding, decoder_rows.outputs() == 0 ? &output : &decoder_rows};
  }
  EmbeddingTable encoder_table() const {
    if (source_embedding == nullptr && encoder_rows.outputs() == 0) return decoder_table();
    return {source_embedding, &encoder_rows};
  }

  bool low() const { return output.matrix().format == WeightFormat::kBf16; }  // activations
  int64_t bytes() const;  // of the packed weights

  // Return the norm of the block that follows layer `i`: after the last layer, the stack's own.
  const PackedNorm& norm_after_encoder_layer(std::size_t i) const {
    return i + 1 < encoder.size() ? encoder[i + 1].self.norm : encoder_norm;
  }
  const PackedNorm& norm_after_decoder_layer(std::size_t i) const {
    return i + 1 < decoder.size() ? decoder[i + 1].self.norm : decoder_norm;
  }
};

}  // namespace lockstep
