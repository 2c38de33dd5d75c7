// The manifest.json of a prepared corpus: what it contains and how it was made. It is written last,
// so a folder that has one is complete. docs/translation.md#the-folder describes the fields.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace lockstep {

// The number of dropped pairs by reason; the reasons are written for the user.
using DropCounts = std::map<std::string, int64_t>;

struct FileRecord {
  std::string name;  // without its folder
  int64_t bytes = 0;
  std::string sha256;

  bool operator==(const FileRecord&) const = default;
};

struct SplitRecord {
  std::string name;  // "train", "dev" or "test"
  int64_t pairs = 0;
  int64_t source_words = 0, target_words = 0;    // separated by white space
  int64_t source_tokens = 0, target_tokens = 0;  // subwords, without start and end symbols
  int64_t text_bytes = 0;                        // of both plain text files
  int64_t seen_in_train = 0;  // pairs with a side that train has too (only given files)
};

// What one source gave, where a corpus has many.
struct SourceRecord {
  std::string name, version;  // of a package
  std::string kind;           // "message catalogues", "manual pages", ...
  int64_t files = 0;
  int64_t pairs_read = 0, pairs_kept = 0;  // kept: in one of the splits
};

struct Manifest {
  std::string lockstep_version;
  std::string command;  // "catalogs" or "text"
  // The options that determine the output. With equal inputs they give the same corpus, byte for
  // byte.
  std::map<std::string, std::string> parameters;
  std::vector<FileRecord> inputs;
  uint64_t seed = 1;
  std::string source_language, target_language;  // "en", "de": the endings of the text files
  int64_t pairs_read = 0;
  DropCounts dropped;
  int32_t vocab_size = 0;
  std::vector<SourceRecord> sources;  // empty where the inputs say it
  std::vector<SplitRecord> splits;    // train first; then dev and test if they exist
  std::vector<FileRecord> files;      // all files of the folder except the manifest

  const SplitRecord* find_split(std::string_view name) const;  // null when absent
  // Returns whether both were made from the same inputs with the same options by the same version.
  bool same_origin(const Manifest& other) const;
};

inline constexpr const char* kManifestName = "manifest.json";

// Throws DataError when the folder holds no complete corpus or the manifest is damaged.
Manifest read_manifest(const fs::path& folder);
void write_manifest(const fs::path& folder, const Manifest& manifest);

// Returns name, size and SHA-256 of a file.
FileRecord record_file(const fs::path& path);

}  // namespace lockstep
