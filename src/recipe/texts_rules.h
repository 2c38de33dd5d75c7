// What fine-tuning a BERT on these texts on this machine should be: each rule a function of facts,
// on what was measured (benchmarks/notes) or published.
#pragma once

#include <string>
#include <vector>

#include "recipe/facts.h"
#include "recipe/recipe.h"
#include "recipe/run_names.h"
#include "recipe/texts_facts.h"
#include "recipe/yardstick.h"

namespace lockstep {

// A pretrained BERT to begin with.
struct BertSource {
  std::string source;  // model.source: a folder, or hf:OWNER/NAME
  BertSize size;
  int64_t longest = 512;  // tokens
  std::string why;
};
// The models that choose_bert() knows.
inline constexpr const char* kMiniLm = "hf:sentence-transformers/all-MiniLM-L6-v2";
inline constexpr const char* kBertBase = "hf:google-bert/bert-base-uncased";
inline constexpr const char* kMultilingual = "hf:google-bert/bert-base-multilingual-cased";

// Which of them are at hand without the network.
struct ModelsAtHand {
  bool minilm_folder = false;                       // ./minilm, as configs/text has it
  bool minilm_cached = false, base_cached = false;  // in the hub's cache
};
// Throws ConfigError for texts that were prepared with the vocabulary of none of them.
BertSource choose_bert(const TextsFacts& facts, const MachineFacts& machine, const Budget& budget,
                       const ModelsAtHand& at_hand);

struct TextsLength {
  int64_t longest = 0;     // tokens of a text that are kept
  int64_t batch = 0;       // texts of a step
  int64_t epochs = 0;      // 0: less than one, so `steps` counts
  int64_t steps = 0;       // in all
  double seconds = 0;      // of all steps, estimated
  double mean_tokens = 0;  // of a text, cut to `longest`
};
TextsLength choose_texts_length(const TextsFacts& facts, const BertSource& source,
                                const MachineFacts& machine, const Budget& budget);

double choose_bert_lr(const BertSize& size, int64_t steps);

// The first one says which checkpoint is kept.
std::vector<std::string> choose_text_metrics(const TextsFacts& facts);

Recipe texts_recipe(const TextsFacts& facts, const BertSource& source, const MachineFacts& machine,
                    const Budget& budget, const RunNames& names);

// prepare (where it is still to be done), launch, evaluate, classify: three of them.
struct TextsCommandsInput {
  TextsInput input;
  TextsReading reading;
  BertSource source;
  int64_t longest = 512;
};
std::vector<std::string> texts_commands(const TextsFacts& facts, const TextsCommandsInput& input,
                                        const RunNames& names);

}  // namespace lockstep
