// One split of a prepared corpus on its way to disk: text of both sides and subword ids.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/output_file.h"
#include "data/manifest/manifest.h"
#include "data/parallel/sentence_pairs.h"
#include "data/tokenize/word_encoder.h"
#include "formats/token_file.h"

namespace lockstep {

// Some pairs as they go into the files; made on any thread.
struct EncodedPairs {
  std::string source, target;  // lines
  std::vector<int32_t> ids;    // source and target in turns
  std::vector<std::size_t> lengths;
  int64_t source_words = 0, target_words = 0;
  int64_t empty = 0;  // pairs left out: nothing of a side was left after Unicode normalisation

  void add(PairView pair, const WordEncoder& encoder);
};

// Writes NAME.tokens, NAME.SOURCE and NAME.TARGET; the files appear when finish() returns.
class SplitWriter {
 public:
  struct Place {
    fs::path folder;
    std::string name, source_language, target_language;
  };
  SplitWriter(const Place& place, const Subword& subword);

  void write(const EncodedPairs& pairs, DropCounts& dropped);
  SplitRecord finish();

 private:
  OutputFile source_, target_;
  TokenFileWriter tokens_;
  SplitRecord record_;
};

}  // namespace lockstep
