// What the manifests of all prepared data have in common: a kind, a version, a list of files.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/manifest/manifest.h"

namespace lockstep {

using ManifestJson = nlohmann::ordered_json;

// The expected kind of a manifest.
struct ManifestKind {
  const char* name;     // the value of "kind"; null if the manifest has none
  const char* what;     // "prepared images", for messages
  const char* command;  // the command that makes such a folder, without its name
};

// Calls `fill` with the manifest.json of the folder. Throws DataError when it is of another kind or
// version or damaged; entries that `fill` misses count as damage.
void read_manifest_json(const fs::path& folder, const ManifestKind& kind,
                        const std::function<void(const ManifestJson&)>& fill);
// Writes `rest` after version and kind. The file is durable when this returns.
void write_manifest_json(const fs::path& folder, const ManifestKind& kind,
                         const ManifestJson& rest);

ManifestJson to_json(const std::vector<FileRecord>& files);
std::vector<FileRecord> files_from_json(const ManifestJson& json);

}  // namespace lockstep
