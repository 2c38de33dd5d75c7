// manifest.json of prepared labelled texts. Written last: a folder that has one is complete.
// docs/text.md#data-lockstep-prepare-labelled describes the fields.
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

// Which columns of the files were taken; folders of text have none.
struct TextColumns {
  std::string text, pair, label;  // empty: none
};

struct TextSplitRecord {
  std::string name;  // "train", "validation", "test"
  std::string file;
  int64_t examples = 0;
  int64_t tokens = 0;                     // special ones included
  int64_t truncated = 0;                  // examples that were cut to max_length
  int64_t skipped = 0;                    // empty texts that were left out
  bool labelled = true;                   // false: its labels are not known (GLUE's test sets)
  std::vector<int64_t> class_counts;      // by label; none for values
  std::map<std::string, double> lengths;  // "min", "mean", "p50", "p90", "p99", "max", in tokens
  std::map<std::string, double> values;   // of regression: "min", "mean", "max"
};

struct TextManifest {
  std::string lockstep_version;
  std::string input;                              // what it was made of, as the command named it
  std::map<std::string, std::string> parameters;  // options that decide the output
  TokenizerIdentity tokenizer;
  int64_t max_length = 0;  // ids of an example at most
  TextColumns columns;
  LabelKind label_kind = LabelKind::kClass;
  std::vector<std::string> classes;  // by label; empty for values
  std::vector<TextSplitRecord> splits;
  std::vector<FileRecord> inputs;  // files that were read
  std::vector<FileRecord> files;   // all that is in the folder, but the manifest itself

  const TextSplitRecord* find_split(std::string_view name) const;  // null when absent
};

// Throws DataError when the folder holds no prepared texts or the manifest is damaged.
TextManifest read_text_manifest(const fs::path& folder);
void write_text_manifest(const fs::path& folder, const TextManifest& manifest);

}  // namespace lockstep
