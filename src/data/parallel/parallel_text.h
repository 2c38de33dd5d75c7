// Reads two text files whose lines translate each other.
#pragma once

#include <optional>
#include <string>

#include "base/file.h"
#include "data/manifest/manifest.h"
#include "data/parallel/sentence_pairs.h"

namespace lockstep {

// Where two files came from: a table or an archive, and what of it.
struct TakenFrom {
  fs::path file;
  std::string parts;  // "columns en and de"
};

struct ParallelFiles {
  fs::path source, target;  // plain or .gz, UTF-8, one sentence per line
  std::optional<TakenFrom> taken = std::nullopt;
};

struct ParallelText {
  SentencePairs pairs;  // without white space at the ends of lines
  int64_t lines = 0;    // pairs read
  DropCounts dropped;   // pairs that are not in `pairs`
};

// Reads the files in parallel. Throws DataError for a missing or damaged file, invalid UTF-8, and
// files of different lengths (with both counts).
ParallelText read_parallel_text(const ParallelFiles& files, const CleaningRules& rules);

// Reads dev and test files: drops only pairs with an empty side, so that scores stay comparable.
ParallelText read_held_out_text(const ParallelFiles& files);

}  // namespace lockstep
