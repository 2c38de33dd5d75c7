// Turns one file that holds both languages of a corpus into two files whose lines translate each
// other.
#pragma once

#include <string>

#include "base/file.h"
#include "data/labelled/table_pairs.h"
#include "data/parallel/parallel_text.h"

namespace lockstep {

// Returns whether a file of this name may hold both languages: a table (csv, tsv, JSON, Parquet), a
// text with tabs (.txt), or an archive.
bool may_hold_pairs(const fs::path& file);

struct TakenPairs {
  ParallelFiles files;     // in the folder, with `taken`
  LanguagePair languages;  // those asked for, else as columns or endings name them, else "source"
                           // and "target"
};

// Writes the pairs of `file` into the folder, in files whose names begin with `name`; no two calls
// with one folder may have the same. An archive holds either two texts whose names end in the
// languages (as those of OPUS in Moses' format do) or one table. Throws DataError for one that
// holds neither or more, with what it holds, and what write_table_pairs() and ArchiveEntries throw.
TakenPairs take_pairs(const fs::path& file, const PairOptions& options, const fs::path& folder,
                      const std::string& name);

}  // namespace lockstep
