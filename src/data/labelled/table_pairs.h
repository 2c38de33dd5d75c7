// Takes sentence pairs out of tables: data sets of translations, as the Hugging Face hub has them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/parallel/parallel_text.h"

namespace lockstep {

struct PairColumns {
  std::string source,
      target;  // names of columns, such as "translation.en" for a member of a struct
};

// Returns the columns of a table that hold the two languages ("en", "de"): members of the struct
// "translation", or columns of these names. Throws DataError, with the columns that there are.
PairColumns find_pair_columns(const fs::path& table, const std::string& source_language,
                              const std::string& target_language);

// Writes the pairs of the tables, in their order, as lines of two files; line ends within a text
// become blanks. The columns are those of the first table, which the others must have. Returns the
// number of pairs. Throws DataError with file and row, and MachineError when the disk refuses.
int64_t write_table_pairs(const std::vector<fs::path>& tables, const PairColumns& columns,
                          const ParallelFiles& to);

}  // namespace lockstep
