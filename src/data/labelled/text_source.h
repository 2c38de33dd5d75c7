// Reads the rows of labelled texts from files: text, pair, label and the place of each.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/labelled/text_columns.h"

namespace lockstep {

struct TextRow {
  std::string text, pair;
  std::optional<std::string> label;  // absent: unknown
  std::string place;                 // "data/train.csv:17", for messages
};

struct TextSourceOptions {
  ColumnOptions columns;
  std::optional<bool> header;        // of csv and tsv; absent: if a known column name is found
  std::optional<bool> quotes;        // absent: true for csv, false for others
  bool tabs = false;                 // .txt is read as .tsv
  std::vector<std::string> classes;  // for folders of texts: only these; empty: all
  bool need_label = true;            // whether a file without labels is an error
};

// A single file, or a folder with CLASS/*.txt.
class TextSource {
 public:
  // Returns rows. Any thread may call it, and several may run at once. Throws DataError with the
  // place.
  using Block = std::function<std::vector<TextRow>()>;

  virtual ~TextSource() = default;

  virtual std::optional<Block> next() = 0;  // one call at a time; throws DataError
  // Known after opening; names are empty for folders of texts.
  virtual TextColumns columns() const = 0;
  // Returns whether each text is a file of its own.
  virtual bool is_folder() const { return false; }
  // Returns the names that the file itself gives to the labels 0, 1, ... (Parquet of Hugging Face),
  // else none.
  virtual std::vector<std::string> class_names() const { return {}; }
};

// Opens a source according to its ending: .csv, .tsv, .jsonl, .json (objects, or a list of them) or
// .parquet; all but the last may be followed by .gz. A folder is read as CLASS/*.txt without
// "unsup". Throws DataError for anything else.
std::unique_ptr<TextSource> open_text_source(const fs::path& path,
                                             const TextSourceOptions& options);

// Throws DataError with place and line if a text is not UTF-8.
void check_utf8_text(std::string_view text, const std::string& place);

// Returns whether open_text_source() accepts a file of this name.
bool is_text_table(const fs::path& file);
// Returns whether a file of that name may be a text: .txt, or no ending, as 20 Newsgroups' have;
// not hidden.
bool is_text_name(const std::string& file);

}  // namespace lockstep
