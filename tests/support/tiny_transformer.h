// A small Transformer with random weights, for tests.
#pragma once

#include <torch/types.h>
#include <torch/utils.h>

#include <vector>

#include "models/transformer.h"

namespace lockstep {

struct TinyTransformer {
  explicit TinyTransformer(const TransformerConfig& config = tiny_config(), int64_t vocabulary = 23,
                           uint64_t seed = 1)
      : model(config, vocabulary, parameters) {
    parameters.allocate(torch::kCPU, torch::kBFloat16, seed);
    // Moves biases and norms away from zero and one, so that a mistake with them shows.
    torch::NoGradGuard no_grad;
    at::Generator generator = at::detail::createCPUGenerator(seed + 1);
    for (const ParameterRef& p : parameters.list()) {
      if (p->shape.size() > 1) continue;
      p->value.add_(torch::empty(p->shape).uniform_(-0.3, 0.3, generator));
    }
    parameters.refresh_low();
  }

  static TransformerConfig tiny_config() {
    TransformerConfig config;
    config.d_model = 24;
    config.heads = 3;
    config.encoder_layers = 2;
    config.decoder_layers = 2;
    config.feed_forward = 40;
    config.longest = 16;
    return config;
  }

  Parameters parameters;
  Transformer model;
};

// Returns sentences of ids in [4, vocabulary), of the given lengths.
inline std::vector<std::vector<int32_t>> random_sentences(const std::vector<int64_t>& lengths,
                                                          int64_t vocabulary, uint64_t seed = 7) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  std::vector<std::vector<int32_t>> out;
  for (int64_t length : lengths) {
    torch::Tensor ids = torch::empty({length}, torch::kInt32).random_(4, vocabulary, generator);
    out.emplace_back(ids.data_ptr<int32_t>(), ids.data_ptr<int32_t>() + length);
  }
  return out;
}

inline TranslationInput translation_input(const std::vector<std::vector<int32_t>>& sources,
                                          const std::vector<std::vector<int32_t>>& targets) {
  TranslationInput input{pack_sentences(sources, torch::kCPU),
                         pack_sentences(targets, torch::kCPU)};
  // Keys are far apart for every sentence, as keys of (sentence, position) are.
  auto keys = [](const PackedSentences& side, int64_t offset) {
    torch::Tensor keys = torch::arange(side.segments.tokens(), torch::kInt64);
    return keys * 1009 + offset;
  };
  input.source.rows = keys(input.source, 5);
  input.target.rows = keys(input.target, 77);
  return input;
}

}  // namespace lockstep
