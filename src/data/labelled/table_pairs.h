// Takes sentence pairs out of tables: data sets of translations as people have them, and as the
// Hugging Face hub has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/labelled/text_columns.h"
#include "data/parallel/parallel_text.h"

namespace lockstep {

struct PairOptions {
  LanguagePair languages;
  TextColumns columns;  // text: the source's, pair: the target's; empty: found by find_sides(), or
                        // in csv, tsv and txt without a header the first two that hold no numbers
  std::optional<bool> header = std::nullopt;  // of csv, tsv and txt; absent: if names are known
};

struct TablePairs {
  TextColumns columns;  // those that were taken: names, or numbers from 1
  int64_t pairs = 0;
};

// Writes the pairs of the tables, in their order, as lines of two files; line ends within a text
// become blanks. The columns are those of the first table, which the others must have. Throws
// DataError with file and row, for columns that are not found with those that there are, and
// MachineError when the disk refuses.
TablePairs write_table_pairs(const std::vector<fs::path>& tables, const PairOptions& options,
                             const ParallelFiles& to);

}  // namespace lockstep
