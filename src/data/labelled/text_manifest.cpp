#include "data/labelled/text_manifest.h"

#include <algorithm>

#include "base/error.h"
#include "data/manifest/manifest_json.h"

namespace lockstep {

namespace {

constexpr ManifestKind kTextFolder{"labelled texts", "prepared labelled texts",
                                   "lockstep prepare labelled INPUT --vocab vocab.txt --out "};
constexpr const char* kLabelKinds[] = {"none", "class", "value"};  // by LabelKind

ManifestJson to_json(const TokenizerIdentity& tokenizer) {
  return {{"vocab_size", tokenizer.vocab_size},
          {"vocab_sha256", tokenizer.vocab_sha256},
          {"lowercase", tokenizer.lowercase},
          {"strip_accents", tokenizer.strip_accents},
          {"chinese_apart", tokenizer.chinese_apart}};
}

ManifestJson to_json(const TextSplitRecord& split) {
  return {{"name", split.name},           {"file", split.file},
          {"examples", split.examples},   {"tokens", split.tokens},
          {"truncated", split.truncated}, {"skipped", split.skipped},
          {"labelled", split.labelled},   {"class_counts", split.class_counts},
          {"lengths", split.lengths},     {"values", split.values}};
}

TextSplitRecord text_split_from_json(const ManifestJson& json) {
  return {.name = json.at("name"),
          .file = json.at("file"),
          .examples = json.at("examples"),
          .tokens = json.at("tokens"),
          .truncated = json.at("truncated"),
          .skipped = json.at("skipped"),
          .labelled = json.at("labelled"),
          .class_counts = json.at("class_counts").get<std::vector<int64_t>>(),
          .lengths = json.at("lengths").get<std::map<std::string, double>>(),
          .values = json.at("values").get<std::map<std::string, double>>()};
}

TextManifest text_manifest_from_json(const ManifestJson& json, const fs::path& path) {
  TextManifest out;
  out.lockstep_version = json.at("lockstep_version");
  out.input = json.at("input");
  out.parameters = json.at("parameters").get<std::map<std::string, std::string>>();
  const ManifestJson& tokenizer = json.at("tokenizer");
  out.tokenizer = {.vocab_size = tokenizer.at("vocab_size"),
                   .vocab_sha256 = tokenizer.at("vocab_sha256"),
                   .lowercase = tokenizer.at("lowercase"),
                   .strip_accents = tokenizer.at("strip_accents"),
                   .chinese_apart = tokenizer.at("chinese_apart")};
  out.max_length = json.at("max_length");
  const ManifestJson& columns = json.at("columns");
  out.columns = {columns.at("text"), columns.at("pair"), columns.at("label")};
  const std::string kind = json.at("label_kind");
  const auto* found = std::find(std::begin(kLabelKinds), std::end(kLabelKinds), kind);
  if (found == std::end(kLabelKinds)) {
    throw DataError("{}: damaged manifest: label_kind is \"{}\"", path.string(), kind);
  }
  out.label_kind = static_cast<LabelKind>(found - std::begin(kLabelKinds));
  out.classes = json.at("classes").get<std::vector<std::string>>();
  for (const ManifestJson& split : json.at("splits"))
    out.splits.push_back(text_split_from_json(split));
  out.inputs = files_from_json(json.at("inputs"));
  out.files = files_from_json(json.at("files"));
  return out;
}

}  // namespace

const TextSplitRecord* TextManifest::find_split(std::string_view name) const {
  for (const TextSplitRecord& split : splits) {
    if (split.name == name) return &split;
  }
  return nullptr;
}

TextManifest read_text_manifest(const fs::path& folder) {
  TextManifest out;
  read_manifest_json(folder, kTextFolder, [&](const ManifestJson& json) {
    out = text_manifest_from_json(json, folder / kManifestName);
  });
  return out;
}

void write_text_manifest(const fs::path& folder, const TextManifest& manifest) {
  ManifestJson splits = ManifestJson::array();
  for (const TextSplitRecord& split : manifest.splits) splits.push_back(to_json(split));
  write_manifest_json(folder, kTextFolder,
                      {{"lockstep_version", manifest.lockstep_version},
                       {"input", manifest.input},
                       {"parameters", manifest.parameters},
                       {"tokenizer", to_json(manifest.tokenizer)},
                       {"max_length", manifest.max_length},
                       {"columns",
                        {{"text", manifest.columns.text},
                         {"pair", manifest.columns.pair},
                         {"label", manifest.columns.label}}},
                       {"label_kind", kLabelKinds[static_cast<std::size_t>(manifest.label_kind)]},
                       {"classes", manifest.classes},
                       {"splits", splits},
                       {"inputs", to_json(manifest.inputs)},
                       {"files", to_json(manifest.files)}});
}

}  // namespace lockstep
