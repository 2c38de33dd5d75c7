// Computes multi-head scaled dot-product attention over packed sentences (Vaswani et
// al. 2017, section 3.2): every sentence attends to itself or to its source, and
// nothing is computed for padding.
#pragma once

#include <torch/types.h>

#include "nn/dropout.h"
#include "nn/numerics.h"
#include "nn/segments.h"

namespace lockstep {

struct AttentionOptions {
  int64_t heads = 8;
  bool causal = false;  // a position sees only itself and earlier ones (self-attention only)
  // Dropout of the attention weights. The row of query q in head h has the key rows[q] * heads + h;
  // the column is the position of the key in its sentence.
  Dropout dropout;
};

// qkv [tokens, 3 * width] = query | key | value in the compute type -> [tokens, width].
torch::Tensor self_attention(const torch::Tensor& qkv, const Segments& segments,
                             const AttentionOptions& options, const Numerics& numerics);

// self_attention for the first token of every sentence only, which sees the whole sentence: often
// nothing else of a network's last block is used. Returns [sentences, width]; options.dropout.rows
// has the keys of those tokens, and `causal` must be off.
torch::Tensor first_token_attention(const torch::Tensor& qkv, const Segments& segments,
                                    const AttentionOptions& options, const Numerics& numerics);

// query [target tokens, width], memory [source tokens, 2 * width] = key | value, same number of
// sentences on both sides -> [target tokens, width].
torch::Tensor cross_attention(const torch::Tensor& query, const torch::Tensor& memory,
                              const Segments& target, const Segments& source,
                              const AttentionOptions& options, const Numerics& numerics);

}  // namespace lockstep
