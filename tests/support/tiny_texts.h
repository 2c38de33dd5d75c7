// Writes files of learnable texts with labels, and of a tiny BERT to learn them.
#pragma once

#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/tokenize/bert_tokenizer.h"
#include "support/program.h"

namespace lockstep {

inline constexpr int kTinyBertVocabulary = 50;

// Writes FOLDER/model: config.json, model.safetensors and vocab.txt of TinyBert with `labels`
// labels.
inline void write_tiny_bert(const fs::path& folder, int64_t labels) {
  const ProgramResult made =
      run_program(LOCKSTEP_RANDOM_MODEL, fmt::format("bert {}/model {}", folder.string(), labels));
  if (made.exit_code != 0) throw std::runtime_error(made.errors);
  std::vector<std::string> pieces = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  for (int i = 5; i < kTinyBertVocabulary; ++i) pieces.push_back("w" + std::to_string(i));
  BertTokenizer(pieces, {}).save(folder / "model");
}

// Returns lines of label TAB text. The label says whether w10 to w19 are more than half of the
// words or, with `values`, what share they are.
inline std::string tiny_texts(int count, uint32_t seed, bool values = false) {
  std::mt19937 random(seed);
  std::string out;
  for (int i = 0; i < count; ++i) {
    const int words = 3 + static_cast<int>(random() % 9);
    const bool wanted = random() % 2 != 0;
    int marked = 0;
    std::string text;
    for (int k = 0; k < words; ++k) {
      const bool mark = (random() % 4 != 0) == wanted;
      marked += mark ? 1 : 0;
      text += fmt::format(" w{}", (mark ? 10 : 20) + random() % 10);
    }
    out += values ? fmt::format("{:.3f}", static_cast<double>(marked) / words)
                  : std::to_string(2 * marked > words ? 1 : 0);
    out += "\t" + text.substr(1) + "\n";
  }
  return out;
}

// Prepares both splits in FOLDER/data with the model's vocabulary. Returns what went wrong, or "".
inline std::string prepare_tiny_texts(const fs::path& folder, bool values = false) {
  write_file(folder / "train.tsv", tiny_texts(80, 1, values));
  write_file(folder / "validation.tsv", tiny_texts(40, 2, values));
  const ProgramResult made = run_lockstep(fmt::format(
      "prepare labelled --train {0}/train.tsv --validation {0}/validation.tsv --vocab {0}/model "
      "--max-length 16 --header no --label 1 --text 2 --out {0}/data {1}",
      folder.string(), values ? "--regression" : ""));
  return made.exit_code == 0 ? "" : made.errors;
}

// Writes FOLDER/tiny.toml, which starts from FOLDER/model.
inline void write_tiny_text_config(const fs::path& folder) {
  write_file(folder / "tiny.toml", fmt::format(R"(
[task]
name = "text"
[run]
precision = "fp32"
seed = 3
[texts]
data = "{0}/data"
[model]
source = "{0}/model"
[batch]
examples = 4
[optimizer]
name = "adamw"
lr = 2e-3
beta2 = 0.999
epsilon = 1e-8
weight_decay = 0.1
[schedule]
name = "hf_linear"
num_warmup_steps = 4
[training]
steps = 20
decay_vectors = false
[evaluation]
every = 0
[checkpoint]
every = 0
)",
                                               folder.string()));
}

}  // namespace lockstep
