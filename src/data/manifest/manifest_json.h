// What the manifests of prepared data have in common: a kind, a version, files.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/manifest/manifest.h"

namespace lockstep {

using ManifestJson = nlohmann::ordered_json;

// What a manifest must say of itself to be read.
struct ManifestKind {
  const char* name;     // the value of "kind"; null where the manifest has none
  const char* what;     // "prepared images", for messages
  const char* command;  // that makes such a folder, up to its name
};

// Calls `fill` with the manifest.json of the folder. Throws DataError when it is of another kind or
// version or damaged, which includes what fill misses in it.
void read_manifest_json(const fs::path& folder, const ManifestKind& kind,
                        const std::function<void(const ManifestJson&)>& fill);
// Writes `rest` behind its version and kind; durable when it returns.
void write_manifest_json(const fs::path& folder, const ManifestKind& kind,
                         const ManifestJson& rest);

ManifestJson to_json(const std::vector<FileRecord>& files);
std::vector<FileRecord> files_from_json(const ManifestJson& json);

}  // namespace lockstep
