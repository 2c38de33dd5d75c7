// What a translation run of these data on this machine should be: each rule a function of facts, on
// what was measured (benchmarks/notes) or published.
#pragma once

#include <string>

#include "recipe/facts.h"
#include "recipe/recipe.h"
#include "recipe/run_names.h"
#include "recipe/translation_files.h"
#include "recipe/yardstick.h"

namespace lockstep {

// How the pairs become a corpus: options of `lockstep prepare text`.
struct CorpusChoice {
  int64_t vocabulary = 0;
  int64_t max_words = 80;
  double ratio = 9;
  double character_coverage = 1;
  std::string why;  // of the vocabulary
};
CorpusChoice choose_corpus(const TranslationFacts& facts);

// A text whose words are not parted by spaces, as Chinese, Japanese and Thai.
bool is_unspaced(double words, double characters);

// Target pieces of an epoch, ends of sentences included.
double target_pieces(const TranslationFacts& facts);

struct TransformerChoice {
  TransformerSize size;
  std::string why;
};
TransformerChoice choose_transformer(const TranslationFacts& facts, const MachineFacts& machine,
                                     const Budget& budget);

struct TranslationLength {
  int64_t tokens = 0;  // target tokens of a step
  int64_t steps = 0, warmup = 0;
  double epochs = 0;
  double seconds = 0;       // of all steps, estimated
  bool data_bound = false;  // the data, not the time, ends it
};
TranslationLength choose_translation_length(const TranslationFacts& facts,
                                            const TransformerSize& size,
                                            const MachineFacts& machine, const Budget& budget);

// Of the residual stream, by how often the data are seen.
double choose_dropout(double epochs);

// The configuration with its reasons. `vocabulary`: of choose_corpus(), or the prepared one.
Recipe translation_recipe(const TranslationFacts& facts, const MachineFacts& machine,
                          const Budget& budget, const RunNames& names);

// prepare (where it is still to be done), launch, evaluate, translate: three of them.
std::vector<std::string> translation_commands(const TranslationFacts& facts,
                                              const TranslationFiles& files, const RunNames& names);

}  // namespace lockstep
