// The rules that choose a translation run for given data and a given machine. Each rule is a
// function of facts and based on measurements (benchmarks/notes) or publications.
#pragma once

#include <string>

#include "recipe/facts.h"
#include "recipe/recipe.h"
#include "recipe/run_names.h"
#include "recipe/translation_files.h"
#include "recipe/yardstick.h"

namespace lockstep {

// The options of `lockstep prepare text`, which makes a corpus of the pairs.
struct CorpusChoice {
  int64_t vocabulary = 0;
  int64_t max_words = 80;
  double ratio = 9;
  double character_coverage = 1;
  std::string why;  // the reason for the vocabulary
};
CorpusChoice choose_corpus(const TranslationFacts& facts);

// Returns true for a text whose words are not separated by spaces, e.g. Chinese, Japanese or Thai.
bool is_unspaced(double words, double characters);

// Returns the target pieces of an epoch, including the ends of sentences.
double target_pieces(const TranslationFacts& facts);

struct TransformerChoice {
  TransformerSize size;
  std::string why;
};
TransformerChoice choose_transformer(const TranslationFacts& facts, const MachineFacts& machine,
                                     const Budget& budget);

struct TranslationLength {
  int64_t tokens = 0;  // target tokens per step
  int64_t steps = 0, warmup = 0;
  double epochs = 0;
  double seconds = 0;       // estimated for all steps
  bool data_bound = false;  // the data and not the time limit the length
};
TranslationLength choose_translation_length(const TranslationFacts& facts,
                                            const TransformerSize& size,
                                            const MachineFacts& machine, const Budget& budget);

// Returns the residual dropout, which depends on how often the data are seen.
double choose_dropout(double epochs);

// Returns the configuration with its reasons.
Recipe translation_recipe(const TranslationFacts& facts, const MachineFacts& machine,
                          const Budget& budget, const RunNames& names);

// Returns three commands: launch and evaluate, before them prepare, or after them translate if the
// data are already prepared.
std::vector<std::string> translation_commands(const TranslationFacts& facts,
                                              const TranslationFiles& files, const RunNames& names);

}  // namespace lockstep
