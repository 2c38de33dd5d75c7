// Guesses which columns of a table contain the text and the label when neither the names nor the
// user say so.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/labelled/text_manifest.h"

namespace lockstep {

using TableRow = std::vector<std::string>;

struct GuessedColumns {
  TextColumns columns;  // names if the table has a header, else numbers from 1
  bool header = false;  // whether the first row names the columns
};

// Guesses from the first rows, of which the very first may be a header. The text is the column with
// the most words, the label the column with the fewest distinct values. A second column of texts
// makes a pair. Returns nothing if no column looks like a text or none looks like a label.
std::optional<GuessedColumns> guess_columns(const std::vector<TableRow>& rows);

// Returns up to `most` rows of a .csv or .tsv file (or a .gz of one), and none of other files.
// Throws DataError like data/labelled/delimited_text.h.
std::vector<TableRow> first_rows(const fs::path& file, std::size_t most);

}  // namespace lockstep
