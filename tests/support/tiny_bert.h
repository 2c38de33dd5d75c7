// A small BERT with random weights, for tests.
#pragma once

#include <torch/types.h>

#include <vector>

#include "models/bert.h"
#include "support/tiny_vit.h"

namespace lockstep {

inline constexpr BertShape kTinyBert{.vocab_size = 50,
                                     .hidden_size = 32,
                                     .num_hidden_layers = 3,
                                     .num_attention_heads = 4,
                                     .intermediate_size = 48,
                                     .max_position_embeddings = 16,
                                     .hidden_dropout_prob = 0,
                                     .attention_probs_dropout_prob = 0,
                                     .num_labels = 3};

struct TinyBert {
  explicit TinyBert(const BertShape& shape = kTinyBert, uint64_t seed = 1)
      : model(shape, parameters) {
    parameters.allocate(torch::kCPU, torch::kBFloat16, seed);
    scatter_weights(parameters, seed + 1);
  }

  Parameters parameters;
  Bert model;
};

// Returns texts of these lengths, in which the second half of each is the second text of a pair.
// Text i has the key keys[i], and the same ids wherever it is in the batch.
inline PackedTexts random_texts(const std::vector<int32_t>& lengths,
                                const std::vector<int64_t>& keys, int64_t vocabulary = 50) {
  std::vector<torch::Tensor> ids, types;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const int64_t n = lengths[i];
    ids.push_back((torch::arange(n) * 7 + keys[i] * 13).remainder(vocabulary));
    types.push_back((torch::arange(n) * 2).ge(n).to(torch::kLong));
  }
  return pack_texts(torch::cat(ids), torch::cat(types), lengths,
                    torch::tensor(keys, torch::kInt64));
}

}  // namespace lockstep
