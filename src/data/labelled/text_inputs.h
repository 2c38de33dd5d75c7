// Determines which files make which split of a data set of labelled texts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace lockstep {

// One split of a data set. The splits are ordered: train, validation, test, then others by name.
struct TextSplitInput {
  std::string name;             // "train", "validation", "test", "validation_matched"
  std::vector<fs::path> files;  // tables, or one folder with CLASS/*.txt
};

// Returns "train" for "train.tsv.gz", "train-00000-of-00002.parquet" and "sst2_train.csv",
// "validation" for dev, val and valid, "validation_matched" for "dev_matched.tsv", and an empty
// string for other names.
std::string text_split_of_name(std::string_view file);

// For a file, returns the split that its name gives, else train. For a folder, returns all tables
// and folders in it that are named after a split, or, if there are none, those of its only
// subfolder that has any, else its only table. Throws DataError when there are none, and when a
// split has files of several kinds.
std::vector<TextSplitInput> find_text_inputs(const fs::path& input);

// Does the same for an archive too. Its tables and texts are unpacked into a temporary folder,
// which goes with this.
class TextInputs {
 public:
  explicit TextInputs(const fs::path& input);
  const std::vector<TextSplitInput>& splits() const { return splits_; }

  // Returns read(splits()). An error in what was unpacked says of which archive it is.
  template <typename Read>
  auto read(const Read& read) const {
    try {
      return read(splits_);
    } catch (Error& error) {
      name_archive(error);
      throw;
    }
  }

 private:
  void name_archive(Error& error) const;

  fs::path input_;
  std::optional<TemporaryFolder> unpacked_;
  std::vector<TextSplitInput> splits_;
};

}  // namespace lockstep
