// Prepares WMT16 English-German from the publishers' archives: does what OpenSeq2Seq's
// scripts/get_en_de.sh does, in stages that can be interrupted
// (docs/translation.md#lockstep-prepare-wmt16-en-de).
#pragma once

#include <string>

#include "data/parallel/corpus_writer.h"
#include "data/parallel/prepare_corpus.h"
#include "data/parallel/wmt_archives.h"

namespace lockstep {

struct WmtOptions {
  // Languages, split sizes and near copies are fixed: en, de and WMT's own dev and test.
  CorpusOptions corpus;
  bool drop_repeated = true;   // keep only one of several equal pairs
  bool check_language = true;  // see PairCleaner
  bool drop_bars = false;
  bool full_test = false;  // newstest2014 with 3,003 instead of 2,737 lines
  FetchOptions fetch;
};

// Memory is bounded for any corpus: about 10 MB per core while pairs are on disk, 0.7 kB per word
// that subwords are learned from, and 16 bytes per pair for the index of the token file. After an
// interruption it continues after the last complete stage (OUT/work). The result is the same, byte
// for byte, for any number of cores and interruptions. Throws ConfigError when OUT holds a corpus
// or an unfinished one that was made with other options.
PreparedCorpus prepare_wmt16(const WmtOptions& options);

}  // namespace lockstep
