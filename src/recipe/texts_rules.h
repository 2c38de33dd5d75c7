// The rules that choose how to fine-tune a BERT on given texts and a given machine. Each rule is a
// function of facts and based on measurements (benchmarks/notes) or publications.
#pragma once

#include <string>
#include <vector>

#include "recipe/facts.h"
#include "recipe/recipe.h"
#include "recipe/run_names.h"
#include "recipe/texts_facts.h"
#include "recipe/yardstick.h"

namespace lockstep {

// A pretrained BERT to start from.
struct BertSource {
  std::string source;  // model.source: a folder, or hf:OWNER/NAME
  BertSize size;
  int64_t longest = 512;  // tokens
  std::string why;
};
// The models among which choose_bert() chooses.
inline constexpr const char* kMiniLm = "hf:sentence-transformers/all-MiniLM-L6-v2";
inline constexpr const char* kBertBase = "hf:google-bert/bert-base-uncased";
inline constexpr const char* kMultilingual = "hf:google-bert/bert-base-multilingual-cased";

// Says which of these models are available without the network.
struct ModelsAtHand {
  bool minilm_folder = false;                       // ./minilm, as in configs/text
  bool minilm_cached = false, base_cached = false;  // in the cache of the hub
};
// Throws ConfigError for texts that were prepared with a vocabulary that none of the models has.
BertSource choose_bert(const TextsFacts& facts, const MachineFacts& machine, const Budget& budget,
                       const ModelsAtHand& at_hand);

struct TextsLength {
  int64_t longest = 0;     // tokens kept per text
  int64_t batch = 0;       // texts per step
  int64_t epochs = 0;      // 0: less than one epoch, so `steps` counts
  int64_t steps = 0;       // in total
  double seconds = 0;      // estimated for all steps
  double mean_tokens = 0;  // per text, cut to `longest`
};
TextsLength choose_texts_length(const TextsFacts& facts, const BertSource& source,
                                const MachineFacts& machine, const Budget& budget);

double choose_bert_lr(const BertSize& size, int64_t steps);

// Returns the metrics. The first one decides which checkpoint is kept as the best.
std::vector<std::string> choose_text_metrics(const TextsFacts& facts);

Recipe texts_recipe(const TextsFacts& facts, const BertSource& source, const MachineFacts& machine,
                    const Budget& budget, const RunNames& names);

// The commands are launch and evaluate, before them prepare, or after them classify if the data are
// already prepared: three in all.
struct TextsCommandsInput {
  TextsInput input;
  TextsReading reading;
  BertSource source;
  int64_t longest = 512;
};
std::vector<std::string> texts_commands(const TextsFacts& facts, const TextsCommandsInput& input,
                                        const RunNames& names);

}  // namespace lockstep
