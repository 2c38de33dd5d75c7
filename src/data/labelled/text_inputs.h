// Which files make which split of a data set of labelled texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace lockstep {

// The splits of a data set, the first named so in order, then others by name.
struct TextSplitInput {
  std::string name;             // "train", "validation", "test", "validation_matched"
  std::vector<fs::path> files;  // tables, or one folder with CLASS/*.txt
};

// "train" of "train.tsv.gz", "train-00000-of-00002.parquet" and "sst2_train.csv"; dev, val and
// valid are "validation"; "validation_matched" of "dev_matched.tsv"; nothing of other names.
std::string text_split_of_name(std::string_view file);

// Of a file: the split that its name tells, else train. Of a folder: all tables and folders in it
// that are named after a split, or, where there are none, those of its one subfolder that has any.
// Throws DataError when there are none, or several kinds of files for one split.
std::vector<TextSplitInput> find_text_inputs(const fs::path& input);

}  // namespace lockstep
