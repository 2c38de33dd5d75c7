// The manifest.json of prepared labelled texts. It is written last: a folder that has one is
// complete. docs/text.md#data-lockstep-prepare-labelled describes the fields.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/manifest/manifest.h"
#include "data/tokenize/bert_tokenizer.h"
#include "formats/text_file.h"

namespace lockstep {

// The columns that were used; folders of text files have none.
struct TextColumns {
  std::string text, pair, label;  // empty: none
};

struct TextSplitRecord {
  std::string name;  // "train", "validation", "test"
  std::string file;
  int64_t examples = 0;
  int64_t tokens = 0;                     // special tokens included
  int64_t truncated = 0;                  // examples that were cut to max_length
  int64_t skipped = 0;                    // empty texts that were left out
  bool labelled = true;                   // false: labels are unknown (GLUE's test sets)
  std::vector<int64_t> class_counts;      // by label; none for values
  std::map<std::string, double> lengths;  // "min", "mean", "p50", "p90", "p99", "max", in tokens
  std::map<std::string, double> values;   // of regression: "min", "mean", "max"
};

struct TextManifest {
  std::string lockstep_version;
  std::string input;                              // the input as named on the command line
  std::map<std::string, std::string> parameters;  // options that determine the output
  TokenizerIdentity tokenizer;
  int64_t max_length = 0;  // the most ids of an example
  TextColumns columns;
  LabelKind label_kind = LabelKind::kClass;
  std::vector<std::string> classes;  // by label; empty for values
  std::vector<TextSplitRecord> splits;
  std::vector<FileRecord> inputs;  // files that were read
  std::vector<FileRecord> files;   // all files of the folder except the manifest

  const TextSplitRecord* find_split(std::string_view name) const;  // null when absent
};

// Throws DataError when the folder holds no prepared texts or the manifest is damaged.
TextManifest read_text_manifest(const fs::path& folder);
void write_text_manifest(const fs::path& folder, const TextManifest& manifest);

}  // namespace lockstep
