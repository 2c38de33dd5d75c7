// The folder of a prepared corpus: subword model, token files, plain text, manifest
// (docs/translation.md#the-folder).
// Nothing that exists is overwritten, and what was interrupted can be done again.
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

// What both ways of preparing share.
struct CorpusOptions {
  fs::path out;
  std::string source_language = "en", target_language = "de";
  CleaningRules cleaning;
  SplitRules split;
  SubwordConfig subword;
};

// One split: these pairs in this order.
struct SplitPairs {
  std::string name;
  const SentencePairs* pairs;
  std::vector<int64_t> order;
  int64_t seen_in_train = 0;
};

// Readies `out` for the corpus that `wanted` describes (its origin: command, parameters, inputs).
// Returns the manifest of the corpus when the folder holds that very one; then nothing is to be
// done. Throws ConfigError when it holds another corpus or files of someone else under our names,
// and MachineError when it cannot be written.
std::optional<Manifest> open_corpus_folder(const fs::path& out, const Manifest& wanted);

// "vocab is 6000 there, 8000 here" for everything in which the origins of the two differ.
std::string describe_differences(const Manifest& there, const Manifest& here);

// Removes the mark of a corpus that is being written and writes the manifest: the last step.
void finish_corpus_folder(const fs::path& out, const Manifest& manifest);

// Learns the subwords on the first split, writes everything and the manifest last. Fills the rest
// of `manifest`. REQUIRES open_corpus_folder() before.
void write_corpus(const CorpusOptions& options, const std::vector<SplitPairs>& splits,
                  Manifest& manifest);

}  // namespace lockstep
