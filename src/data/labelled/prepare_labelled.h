// Implements `lockstep prepare labelled`: turns files of labelled texts into token ids.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/labelled/text_inputs.h"
#include "data/labelled/text_manifest.h"
#include "data/labelled/text_source.h"

namespace lockstep {

enum class EmptyTexts { kFail, kSkip, kKeep };

struct PrepareLabelledOptions {
  fs::path input;                      // a file or folder; or empty, and then
  std::vector<TextSplitInput> splits;  // each split is given
  std::string input_name;              // for the manifest; empty: the name of `input`
  fs::path out;
  fs::path vocabulary;            // vocab.txt, tokenizer.json, or a folder with one
  std::optional<bool> lowercase;  // absent: as the folder's configuration says
  int64_t max_length = 512;       // ids per text or pair, with [CLS] and [SEP]
  ColumnOptions columns;
  std::optional<bool> header, quotes;
  std::vector<std::string> classes;  // names in order; empty: sorted names of the first split
  // Names of the labels by column, where the files themselves name none (the card of a data set of
  // the hub).
  std::map<std::string, std::vector<std::string>> class_names;
  bool regression = false;  // labels are values
  EmptyTexts empty = EmptyTexts::kFail;
  double hold_out = 0;  // share of train that becomes validation
  uint64_t seed = 1;    // for hold_out
  int64_t threads = 0;  // 0: all cores
};

// Prepares the texts and writes the manifest last. Equal input and options give the same files,
// byte for byte. Throws DataError for unusable input, ConfigError for wrong options and
// MachineError when the disk refuses.
TextManifest prepare_labelled(const PrepareLabelledOptions& options);

// Returns tables for the user: splits, lengths, classes.
std::string describe_labelled(const TextManifest& manifest);

}  // namespace lockstep
