// Two text files whose lines translate each other.
#pragma once

#include "base/file.h"
#include "data/manifest/manifest.h"
#include "data/parallel/sentence_pairs.h"

namespace lockstep {

struct ParallelFiles {
  fs::path source, target;  // plain or .gz, UTF-8, one sentence a line
};

struct ParallelText {
  SentencePairs pairs;  // white space at the ends of lines is gone
  int64_t lines = 0;    // pairs read
  DropCounts dropped;   // pairs that are not in `pairs`
};

// Reads the files in step. Throws DataError for a missing or damaged file, invalid UTF-8, and files
// of different length (with both counts).
ParallelText read_parallel_text(const ParallelFiles& files, const CleaningRules& rules);

// For dev and test files: drops pairs with an empty side only, so that scores stay comparable.
ParallelText read_held_out_text(const ParallelFiles& files);

}  // namespace lockstep
