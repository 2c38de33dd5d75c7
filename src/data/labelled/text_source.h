// The rows of labelled texts out of files: text, pair, label, and where each stands.
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
  std::optional<std::string> label;  // absent: not known
  std::string place;                 // "data/train.csv:17", for messages
};

struct TextSourceOptions {
  ColumnOptions columns;
  std::optional<bool> header;        // of csv and tsv; absent: when it has a column of a known name
  std::optional<bool> quotes;        // absent: in csv, not in tsv
  std::vector<std::string> classes;  // of folders of texts: these and no others; empty: all
  bool need_label = true;            // else a file without labels is all right
};

// One file, or a folder with CLASS/*.txt.
class TextSource {
 public:
  // Gives rows; called on any thread, several at a time. Throws DataError with the place.
  using Block = std::function<std::vector<TextRow>()>;

  virtual ~TextSource() = default;

  virtual std::optional<Block> next() = 0;  // one call at a time; throws DataError
  // Known after opening; empty names for folders of texts.
  virtual TextColumns columns() const = 0;
  // The texts are files of their own.
  virtual bool is_folder() const { return false; }
  // Names that the file itself gives the labels 0, 1, ... (Parquet of Hugging Face); else none.
  virtual std::vector<std::string> class_names() const { return {}; }
};

// By the name's ending: .csv, .tsv, .jsonl, .json (objects, or a list of them), .parquet; .gz
// behind any but the last. A folder: CLASS/*.txt, "unsup" left out. Throws DataError for anything
// else.
std::unique_ptr<TextSource> open_text_source(const fs::path& path,
                                             const TextSourceOptions& options);

// Throws DataError, with place and line, for a text that is not UTF-8.
void check_utf8_text(std::string_view text, const std::string& place);

// True for names that open_text_source() takes.
bool is_text_table(const fs::path& file);

}  // namespace lockstep
