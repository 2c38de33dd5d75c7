// Which columns of a table hold the text, its pair and the label.
#pragma once

#include <string>
#include <vector>

#include "data/labelled/text_manifest.h"

namespace lockstep {

// As the command was told: names, or numbers from 1 for files without a header. Empty: found by
// names that are in use for it ("sentence1" and "sentence2", "label", ...).
struct ColumnOptions {
  TextColumns wanted;
  bool labels = true;   // false: there are none
  bool values = false;  // labels are values: "score" is one of their names
};

// True when one of the names is one that is looked for: a first line with it is a header.
bool has_known_column(const std::vector<std::string>& names);

// The columns that are there, by their names. `source` is for messages. Throws DataError, with the
// nearest name, for a column that is not there and for one that cannot be found. A label that is
// not there is empty when `need_label` is false.
TextColumns choose_columns(const std::vector<std::string>& names, const ColumnOptions& options,
                           const std::string& source, bool need_label);

// The place of a column in `names`. REQUIRES that it is there.
std::size_t column_index(const std::vector<std::string>& names, const std::string& column);

// "1", "2", ...: the names of columns without a header.
std::vector<std::string> numbered_columns(std::size_t count);

}  // namespace lockstep
