#include "data/manifest.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kFormatVersion = 1;

Json to_json(const std::vector<FileRecord>& files) {
  Json out = Json::array();
  for (const FileRecord& file : files) {
    out.push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  }
  return out;
}

std::vector<FileRecord> files_from_json(const Json& json) {
  std::vector<FileRecord> out;
  for (const Json& file : json) {
    out.push_back({file.at("name"), file.at("bytes"), file.at("sha256")});
  }
  return out;
}

Json to_json(const SplitRecord& split) {
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

SplitRecord split_from_json(const Json& json) {
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

Manifest manifest_from_json(const Json& json) {
  Manifest out;
  out.format_version = json.at("format_version");
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
  for (const Json& split : json.at("splits")) out.splits.push_back(split_from_json(split));
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
  std::string text = read_file(path);
  try {
    Json json = Json::parse(text);
    int64_t version = json.at("format_version");
    if (version != kFormatVersion) {
      throw DataError("{}: format version {}, this program reads version {}; prepare it again",
                      path.string(), version, kFormatVersion);
    }
    return manifest_from_json(json);
  } catch (const nlohmann::json::exception& problem) {
    DataError error("{}: damaged manifest", path.string());
    error.set_cause(problem.what());
    throw error;
  }
}

void write_manifest(const fs::path& folder, const Manifest& manifest) {
  Json splits = Json::array();
  for (const SplitRecord& split : manifest.splits) splits.push_back(to_json(split));
  Json json{{"format_version", manifest.format_version},
            {"lockstep_version", manifest.lockstep_version},
            {"command", manifest.command},
            {"parameters", manifest.parameters},
            {"inputs", to_json(manifest.inputs)},
            {"seed", manifest.seed},
            {"source_language", manifest.source_language},
            {"target_language", manifest.target_language},
            {"pairs_read", manifest.pairs_read},
            {"dropped", manifest.dropped},
            {"vocab_size", manifest.vocab_size},
            {"splits", splits},
            {"files", to_json(manifest.files)}};
  write_file(folder / kManifestName, json.dump(2) + "\n");
  sync_folder(folder);
}

FileRecord record_file(const fs::path& path) {
  std::string sha256 = sha256_of_file(path);
  return {path.filename().string(), static_cast<int64_t>(fs::file_size(path)), sha256};
}

}  // namespace lockstep
