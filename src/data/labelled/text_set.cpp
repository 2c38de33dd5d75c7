#include "data/labelled/text_set.h"

#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

const TextSplitRecord& need_split(const TextManifest& manifest, const fs::path& folder,
                                  const std::string& split) {
  if (const TextSplitRecord* found = manifest.find_split(split)) return *found;
  std::vector<std::string> names;
  for (const TextSplitRecord& record : manifest.splits) names.push_back(record.name);
  throw DataError("{}: no split \"{}\"{} ({})", folder.string(), split, did_you_mean(split, names),
                  join(names, ", "));
}

}  // namespace

TextSet::TextSet(const fs::path& folder, const std::string& split)
    : folder_(folder),
      manifest_(read_text_manifest(folder)),
      record_(need_split(manifest_, folder, split)),
      file_(folder / record_.file) {
  const TextFileInfo& info = file_.info();
  const LabelKind kind = record_.labelled ? manifest_.label_kind : LabelKind::kNone;
  if (file_.size() != record_.examples || file_.tokens() != record_.tokens ||
      info.vocab_sha256 != manifest_.tokenizer.vocab_sha256 || info.label_kind != kind ||
      (kind == LabelKind::kClass && info.classes != std::ssize(manifest_.classes))) {
    throw DataError("{}: not the file that {} tells of; prepare the texts again",
                    (folder / record_.file).string(), kManifestName);
  }
}

std::string TextSet::name(int64_t index) const {
  return fmt::format("{}: example {}", (folder_ / record_.file).string(), index);
}

std::string TextSet::identity() const {
  for (const FileRecord& file : manifest_.files) {
    if (file.name == record_.file) return file.sha256;
  }
  throw DataError("{}: no file {} in it", (folder_ / kManifestName).string(), record_.file);
}

}  // namespace lockstep
