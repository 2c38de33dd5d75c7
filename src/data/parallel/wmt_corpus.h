// WMT16 English-German from the publishers' archives to a prepared corpus: what OpenSeq2Seq's
// scripts/get_en_de.sh does, in stages that can be interrupted
// (docs/translation.md#lockstep-prepare-wmt16-en-de).
#pragma once

#include <string>

#include "data/parallel/corpus_writer.h"
#include "data/parallel/prepare_corpus.h"
#include "data/parallel/wmt_archives.h"

namespace lockstep {

struct WmtOptions {
  // Languages, split sizes and near copies are given: en, de and WMT's own dev and test.
  CorpusOptions corpus;
  bool drop_repeated = true;   // of equal pairs one stays
  bool check_language = true;  // PairCleaner
  bool drop_bars = false;
  bool full_test = false;  // newstest2014 with 3,003 lines instead of 2,737
  FetchOptions fetch;
};

// Memory is bounded whatever the corpus: about 10 MB for each core and pairs on disk, 0.7 kB for
// each word that subwords are learned from, 16 bytes a pair for the index of the token file.
// Interrupted, it goes on after the last stage that was complete (OUT/work); the result is the
// same, byte for byte, for any number of cores and interruptions. Throws ConfigError when OUT holds
// a corpus or an unfinished one made in another way.
PreparedCorpus prepare_wmt16(const WmtOptions& options);

}  // namespace lockstep
