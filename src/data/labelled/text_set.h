// A split of the texts that `lockstep prepare labelled` made: ids, types and labels by number, in
// the order of the source files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/labelled/text_manifest.h"
#include "formats/text_file.h"

namespace lockstep {

// All methods are safe to call from several threads. The folder also holds the tokenizer:
// BertTokenizer::load(folder).
class TextSet {
 public:
  // Throws DataError when the folder is none, the split is absent (naming those that are there) or
  // its file is damaged or of another preparation than the manifest.
  TextSet(const fs::path& folder, const std::string& split);

  int64_t size() const { return file_.size(); }
  const TextManifest& manifest() const { return manifest_; }
  const TextSplitRecord& record() const { return record_; }
  const TextFile& file() const { return file_; }
  // By label; empty for values (manifest().label_kind).
  const std::vector<std::string>& classes() const { return manifest_.classes; }
  // "DATA/train.texts: example 17", for messages.
  std::string name(int64_t index) const;
  // Equal for equal data wherever they lie: ranks on several hosts compare it.
  std::string identity() const;

 private:
  fs::path folder_;
  TextManifest manifest_;
  TextSplitRecord record_;
  TextFile file_;
};

}  // namespace lockstep
