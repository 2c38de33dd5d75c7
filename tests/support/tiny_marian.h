// A published Marian in small, as transformers stores it, for tests: random weights, and a
// vocabulary that is learned on lines of text.
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/tokenize/subword.h"
#include "support/program.h"

namespace lockstep {

inline nlohmann::ordered_json tiny_marian_config(int64_t vocabulary) {
  return {{"model_type", "marian"},
          {"architectures", {"MarianMTModel"}},
          {"vocab_size", vocabulary},
          {"d_model", 32},
          {"encoder_layers", 2},
          {"decoder_layers", 1},
          {"encoder_attention_heads", 4},
          {"decoder_attention_heads", 4},
          {"encoder_ffn_dim", 48},
          {"decoder_ffn_dim", 48},
          {"activation_function", "swish"},
          {"scale_embedding", true},
          {"max_position_embeddings", 128},
          {"pad_token_id", vocabulary - 1},
          {"eos_token_id", 0},
          {"decoder_start_token_id", vocabulary - 1},
          {"forced_eos_token_id", 0},
          {"bad_words_ids", {{vocabulary - 1}}},
          {"num_beams", 2},
          {"max_length", 32},
          {"torch_dtype", "float32"}};
}

// Makes source.spm, target.spm and vocab.json. Returns the number of ids.
inline int64_t make_marian_vocabulary(const fs::path& folder, const std::vector<std::string>& lines,
                                      int32_t pieces) {
  fs::create_directories(folder);
  std::size_t next = 0;
  const std::string model = learn_subwords({.vocab_size = pieces}, [&](std::string_view& line) {
    if (next == lines.size()) return false;
    line = lines[next++];
    return true;
  });
  const Subword subword = Subword::from_bytes(model);
  nlohmann::ordered_json vocabulary = {{"</s>", 0}, {"<unk>", 1}};
  for (int32_t id = 4; id < subword.vocab_size(); ++id) {
    vocabulary[subword.piece(id)] = vocabulary.size();
  }
  vocabulary["<pad>"] = vocabulary.size();
  write_file(folder / "source.spm", model);
  write_file(folder / "target.spm", model);
  write_file(folder / "vocab.json", vocabulary.dump());
  write_file(folder / "tokenizer_config.json",
             R"({"tokenizer_class": "MarianTokenizer", "source_lang": "en", "target_lang": "de"})");
  return static_cast<int64_t>(vocabulary.size());
}

// Writes config.json and random weights for it into the folder.
inline void make_published_weights(const fs::path& folder, const nlohmann::ordered_json& config,
                                   uint64_t seed = 3) {
  fs::create_directories(folder);
  write_file(folder / "config.json", config.dump());
  const ProgramResult made =
      run_program(LOCKSTEP_RANDOM_MODEL, fmt::format("marian {} {}", folder.string(), seed));
  if (made.exit_code != 0) throw std::runtime_error(made.errors);
}

inline void make_tiny_marian(const fs::path& folder, const std::vector<std::string>& lines,
                             int32_t pieces = 60) {
  make_published_weights(folder, tiny_marian_config(make_marian_vocabulary(folder, lines, pieces)));
}

}  // namespace lockstep
