// From files of labelled texts to token ids, start to end: what `lockstep prepare labelled` does.
#pragma once

#include <cstdint>
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
  fs::path input;                      // a file or folder, or none:
  std::vector<TextSplitInput> splits;  // given one by one
  fs::path out;
  fs::path vocabulary;            // vocab.txt, tokenizer.json, or a folder with them
  std::optional<bool> lowercase;  // absent: as the folder says
  int64_t max_length = 512;       // ids of a text or pair, [CLS] and [SEP] included
  ColumnOptions columns;
  std::optional<bool> header, quotes;
  std::vector<std::string> classes;  // names in order; empty: those of the first split, sorted
  bool regression = false;           // labels are values
  EmptyTexts empty = EmptyTexts::kFail;
  double hold_out = 0;  // share of train that becomes validation
  uint64_t seed = 1;    // of hold_out
  int64_t threads = 0;  // 0: all cores
};

// The manifest is written last. Equal input and options give the same files, byte for byte. Throws
// DataError for input that cannot be used, ConfigError for options, MachineError when the disk
// refuses.
TextManifest prepare_labelled(const PrepareLabelledOptions& options);

// Tables for people: splits, lengths, classes.
std::string describe_labelled(const TextManifest& manifest);

}  // namespace lockstep
