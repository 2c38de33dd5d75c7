// Determines which columns of a table contain the text, its pair and the label.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/labelled/text_manifest.h"

namespace lockstep {

// The languages of a translation, as "en"; an empty one is found by the names of the columns.
struct LanguagePair {
  std::string source, target;
};

// The columns that the user named: names, or numbers from 1 for files without a header. Empty ones
// are found by common names ("sentence1" and "sentence2", "label", ...).
struct ColumnOptions {
  TextColumns wanted;
  bool labels = true;   // false: there are no labels
  bool values = false;  // labels are values; "score" is then a known name
  // Set for translations: `text` is the source and `pair` the target, and there is no label.
  std::optional<LanguagePair> languages;
};

// Returns whether one of the names is a known column name: the first line is then a header.
bool has_known_column(const std::vector<std::string>& names);

// Returns the columns of source and target: named as the languages, alone or as members of
// "translation" ("en", "translation.en"), or by usual names ("source", "target"). Of languages that
// are not given there must be two, by codes of two letters; English is then the source, else the
// first column's.
std::optional<std::pair<std::string, std::string>> find_sides(const std::vector<std::string>& names,
                                                              const LanguagePair& languages);

// Returns whether find_sides() finds these languages or any others: the first line is then a
// header.
bool has_known_sides(const std::vector<std::string>& names, const LanguagePair& languages);

// Returns the names of the columns to use. `source` is for messages. Throws DataError for a column
// that does not exist (with the most similar name) and for one that cannot be found. If
// `need_label` is false, a missing label column is returned as an empty name.
TextColumns choose_columns(const std::vector<std::string>& names, const ColumnOptions& options,
                           const std::string& source, bool need_label);

// Returns the index of a column in `names`. REQUIRES: `names` contains it.
std::size_t column_index(const std::vector<std::string>& names, const std::string& column);

// Returns "1", "2", ..., the names of columns without a header.
std::vector<std::string> numbered_columns(std::size_t count);

}  // namespace lockstep
