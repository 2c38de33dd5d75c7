#include "data/manifest/manifest_json.h"

#include "base/error.h"

namespace lockstep {

namespace {

constexpr int64_t kFormatVersion = 1;

}  // namespace

void read_manifest_json(const fs::path& folder, const ManifestKind& kind,
                        const std::function<void(const ManifestJson&)>& fill) {
  const fs::path path = folder / kManifestName;
  const std::string text = read_file(path);
  try {
    const ManifestJson json = ManifestJson::parse(text);
    if (kind.name != nullptr && json.value("kind", "") != kind.name) {
      DataError error("{}: not of {}", path.string(), kind.what);
      error.set_advice(kind.command + folder.string());
      throw error;
    }
    const int64_t version = json.at("format_version");
    if (version != kFormatVersion) {
      throw DataError("{}: format version {}, this program reads version {}; prepare it again",
                      path.string(), version, kFormatVersion);
    }
    fill(json);
  } catch (const nlohmann::json::exception& problem) {
    DataError error("{}: damaged manifest", path.string());
    error.set_cause(problem.what());
    throw error;
  }
}

void write_manifest_json(const fs::path& folder, const ManifestKind& kind,
                         const ManifestJson& rest) {
  ManifestJson json{{"format_version", kFormatVersion}};
  if (kind.name != nullptr) json["kind"] = kind.name;
  json.update(rest);
  write_file(folder / kManifestName, json.dump(2) + "\n");
  sync_folder(folder);
}

ManifestJson to_json(const std::vector<FileRecord>& files) {
  ManifestJson out = ManifestJson::array();
  for (const FileRecord& file : files) {
    out.push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  }
  return out;
}

std::vector<FileRecord> files_from_json(const ManifestJson& json) {
  std::vector<FileRecord> out;
  for (const ManifestJson& file : json) {
    out.push_back({file.at("name"), file.at("bytes"), file.at("sha256")});
  }
  return out;
}

}  // namespace lockstep
