#include "data/manifest/manifest.h"

#include <utility>

#include "base/digest.h"
#include "base/error.h"
#include "data/manifest/manifest_json.h"

namespace lockstep {

namespace {

constexpr ManifestKind kCorpus{nullptr, nullptr, nullptr};

ManifestJson to_json(const SplitRecord& split) {
  return {{"name", split.name},
          {"pairs", split.pairs},
          {"source_words", split.source_words},
          {"target_words", split.target_words},
          {"source_tokens", split.source_tokens},
          {"target_tokens", split.target_tokens},
          {"text_megabytes", static_cast<double>(split.text_bytes) / 1e6},
          {"text_bytes", split.text_bytes},
          {"seen_in_train", split.seen_in_train}};
}

SplitRecord split_from_json(const ManifestJson& json) {
  SplitRecord out;
  out.name = json.at("name");
  out.pairs = json.at("pairs");
  out.source_words = json.at("source_words");
  out.target_words = json.at("target_words");
  out.source_tokens = json.at("source_tokens");
  out.target_tokens = json.at("target_tokens");
  out.text_bytes = json.at("text_bytes");
  out.seen_in_train = json.at("seen_in_train");
  return out;
}

ManifestJson to_json(const SourceRecord& source) {
  return {{"name", source.name},
          {"version", source.version},
          {"kind", source.kind},
          {"files", source.files},
          {"pairs_read", source.pairs_read},
          {"pairs_kept", source.pairs_kept}};
}

SourceRecord source_from_json(const ManifestJson& json) {
  SourceRecord out;
  out.name = json.at("name");
  out.version = json.at("version");
  out.kind = json.at("kind");
  out.files = json.at("files");
  out.pairs_read = json.at("pairs_read");
  out.pairs_kept = json.at("pairs_kept");
  return out;
}

Manifest manifest_from_json(const ManifestJson& json) {
  Manifest out;
  out.lockstep_version = json.at("lockstep_version");
  out.command = json.at("command");
  out.parameters = json.at("parameters").get<std::map<std::string, std::string>>();
  out.inputs = files_from_json(json.at("inputs"));
  out.seed = json.at("seed");
  out.source_language = json.at("source_language");
  out.target_language = json.at("target_language");
  out.pairs_read = json.at("pairs_read");
  out.dropped = json.at("dropped").get<DropCounts>();
  out.vocab_size = json.at("vocab_size");
  if (json.contains("sources")) {
    for (const ManifestJson& source : json.at("sources")) {
      out.sources.push_back(source_from_json(source));
    }
  }
  for (const ManifestJson& split : json.at("splits")) out.splits.push_back(split_from_json(split));
  out.files = files_from_json(json.at("files"));
  return out;
}

}  // namespace

const SplitRecord* Manifest::find_split(std::string_view name) const {
  for (const SplitRecord& split : splits) {
    if (split.name == name) return &split;
  }
  return nullptr;
}

bool Manifest::same_origin(const Manifest& other) const {
  return lockstep_version == other.lockstep_version && command == other.command &&
         parameters == other.parameters && inputs == other.inputs && seed == other.seed &&
         source_language == other.source_language && target_language == other.target_language;
}

Manifest read_manifest(const fs::path& folder) {
  fs::path path = folder / kManifestName;
  if (!fs::exists(path)) {
    DataError error("{}: not a prepared corpus (no {})", folder.string(), kManifestName);
    error.set_advice("make one with: lockstep prepare catalogs --out " + folder.string() +
                     ", or lockstep prepare text SOURCE TARGET --out " + folder.string());
    throw error;
  }
  Manifest out;
  read_manifest_json(folder, kCorpus,
                     [&](const ManifestJson& json) { out = manifest_from_json(json); });
  return out;
}

void write_manifest(const fs::path& folder, const Manifest& manifest) {
  ManifestJson splits = ManifestJson::array();
  for (const SplitRecord& split : manifest.splits) splits.push_back(to_json(split));
  ManifestJson rest{{"lockstep_version", manifest.lockstep_version},
                    {"command", manifest.command},
                    {"parameters", manifest.parameters},
                    {"inputs", to_json(manifest.inputs)},
                    {"seed", manifest.seed},
                    {"source_language", manifest.source_language},
                    {"target_language", manifest.target_language},
                    {"pairs_read", manifest.pairs_read},
                    {"dropped", manifest.dropped},
                    {"vocab_size", manifest.vocab_size}};
  if (!manifest.sources.empty()) {
    ManifestJson sources = ManifestJson::array();
    for (const SourceRecord& source : manifest.sources) sources.push_back(to_json(source));
    rest["sources"] = std::move(sources);
  }
  rest["splits"] = std::move(splits);
  rest["files"] = to_json(manifest.files);
  write_manifest_json(folder, kCorpus, rest);
}

FileRecord record_file(const fs::path& path) {
  std::string sha256 = sha256_of_file(path);
  return {path.filename().string(), static_cast<int64_t>(fs::file_size(path)), sha256};
}

}  // namespace lockstep
