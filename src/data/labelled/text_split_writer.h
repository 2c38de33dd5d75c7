// Writes one split of labelled texts and collects its figures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/labelled/text_manifest.h"
#include "formats/text_file.h"

namespace lockstep {

class TextSplitWriter {
 public:
  // Writes `folder`/NAME.texts.
  TextSplitWriter(const fs::path& folder, const std::string& name, const TextFileInfo& info);

  void add(const TextExample& example, bool truncated);
  void skip() { ++record_.skipped; }
  // Drops the labels of all examples so far, for a split whose labels are unknown.
  void drop_labels();
  // See TextFileWriter::relabel().
  void relabel(const std::vector<int32_t>& numbers, int32_t classes);

  int64_t examples() const { return writer_.examples(); }
  // Finishes the file and returns its record for the manifest.
  TextSplitRecord finish();

 private:
  TextFileWriter writer_;
  TextSplitRecord record_;
  LabelKind kind_;
  int32_t classes_;
  std::vector<int32_t> lengths_, labels_;
  std::vector<float> values_;
};

}  // namespace lockstep
