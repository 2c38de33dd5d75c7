// Writes one split of a prepared corpus: the text of both sides and the subword ids.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/output_file.h"
#include "data/manifest/manifest.h"
#include "data/parallel/sentence_pairs.h"
#include "data/tokenize/translation_tokenizer.h"
#include "data/tokenize/word_encoder.h"
#include "formats/token_file.h"

namespace lockstep {

// Appends the ids of a line of either side. Several threads may call it.
struct PairEncoder {
  std::function<void(std::string_view line, std::vector<int32_t>&ids)> source, target;
};
// These keep references.
PairEncoder pair_encoder(const WordEncoder& both);
PairEncoder pair_encoder(const TranslationTokenizer& tokenizer);

// Some pairs in the form in which they are written. Any thread may make them.
struct EncodedPairs {
  std::string source, target;  // concatenated lines
  std::vector<int32_t> ids;    // source and target alternate
  std::vector<std::size_t> lengths;
  int64_t source_words = 0, target_words = 0;
  int64_t empty = 0;  // dropped pairs: Unicode normalization left a side empty

  void add(PairView pair, const PairEncoder& encoder);
};

// Writes NAME.tokens, NAME.SOURCE and NAME.TARGET. The files appear when finish() returns.
class SplitWriter {
 public:
  struct Place {
    fs::path folder;
    std::string name, source_language, target_language;
  };
  SplitWriter(const Place& place, const TokenFileInfo& vocabulary);

  void write(const EncodedPairs& pairs, DropCounts& dropped);
  SplitRecord finish();

 private:
  OutputFile source_, target_;
  TokenFileWriter tokens_;
  SplitRecord record_;
};

}  // namespace lockstep
