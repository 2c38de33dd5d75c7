// Which columns of a table hold the text and the label, where neither names nor the user say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/labelled/text_manifest.h"

namespace lockstep {

using TableRow = std::vector<std::string>;

struct GuessedColumns {
  TextColumns columns;  // by name where the table has a header, else numbers from 1
  bool header = false;  // the first row names the columns
};

// From the first rows, of which the first may be a header. The text is the column with the most
// words, the label the one with the fewest different values; a second column of texts makes a pair.
// Nothing: no column looks like a text, or none like a label.
std::optional<GuessedColumns> guess_columns(const std::vector<TableRow>& rows);

// Of a .csv or .tsv (or .gz of one) up to `most` rows; none of other files. Throws DataError as
// data/labelled/delimited_text.h does.
std::vector<TableRow> first_rows(const fs::path& file, std::size_t most);

}  // namespace lockstep
