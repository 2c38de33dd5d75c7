// Writes the folder of a prepared corpus: subword model, token files, plain text and manifest
// (docs/translation.md#the-folder). Existing files are never overwritten, and an interrupted run
// can be repeated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/manifest/manifest.h"
#include "data/parallel/corpus_split.h"
#include "data/parallel/sentence_pairs.h"
#include "data/tokenize/subword.h"

namespace lockstep {

// The options that both ways of preparing a corpus share.
struct CorpusOptions {
  fs::path out;
  std::string source_language = "en", target_language = "de";
  CleaningRules cleaning;
  SplitRules split;
  SubwordConfig subword;
  // A folder with the vocabulary of a published model (data/tokenize/published_vocabulary.h) or of
  // an exported one; empty: one is learned. The name is the user's: hf:OWNER/NAME.
  fs::path vocabulary;
  std::string vocabulary_name;
};

// One split: the pairs `order` of `pairs`, in this order.
struct SplitPairs {
  std::string name;
  const SentencePairs* pairs;
  std::vector<int64_t> order;
  int64_t seen_in_train = 0;
};

// Prepares `out` for the corpus whose origin (command, parameters, inputs) `wanted` describes. If
// the folder already holds exactly that corpus, returns its manifest, and nothing remains to be
// done. Throws ConfigError when the folder holds another corpus or unrelated files with our names,
// and MachineError when it cannot be written.
std::optional<Manifest> open_corpus_folder(const fs::path& out, const Manifest& wanted);

// Returns "vocab is 6000 there, 8000 here" for every difference between the origins of the two.
std::string describe_differences(const Manifest& there, const Manifest& here);

// Removes the marker of an unfinished corpus and writes the manifest. This is the last step.
void finish_corpus_folder(const fs::path& out, const Manifest& manifest);

// Learns the subwords on the first split, or takes those of options.vocabulary, and writes all
// files, the manifest last. Fills the remaining fields of `manifest`. REQUIRES:
// open_corpus_folder() was called before.
void write_corpus(const CorpusOptions& options, const std::vector<SplitPairs>& splits,
                  Manifest& manifest);

}  // namespace lockstep
