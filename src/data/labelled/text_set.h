// One split of the texts that `lockstep prepare labelled` prepared: ids, type ids and labels by
// number, in the order of the source files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/labelled/text_manifest.h"
#include "formats/text_file.h"

namespace lockstep {

// All methods are thread-safe. The folder also contains the tokenizer: BertTokenizer::load(folder).
class TextSet {
 public:
  // Throws DataError when the folder holds no prepared texts, when the split is absent (with the
  // names of the splits that exist), and when its file is damaged or does not match the manifest.
  TextSet(const fs::path& folder, const std::string& split);

  int64_t size() const { return file_.size(); }
  const TextManifest& manifest() const { return manifest_; }
  const TextSplitRecord& record() const { return record_; }
  const TextFile& file() const { return file_; }
  // Returns the class names by label; empty for values (manifest().label_kind).
  const std::vector<std::string>& classes() const { return manifest_.classes; }
  // Returns "DATA/train.texts: example 17", for messages.
  std::string name(int64_t index) const;
  // Returns a hash that is equal for equal data in any folder: ranks on several hosts compare it.
  std::string identity() const;

 private:
  fs::path folder_;
  TextManifest manifest_;
  TextSplitRecord record_;
  TextFile file_;
};

}  // namespace lockstep
