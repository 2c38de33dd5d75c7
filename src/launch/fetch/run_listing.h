// What a host has of a run: its files with sizes and identities, as a host's script lists them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace lockstep {

// What tells whether a file changed, as its host says it.
struct FileFacts {
  int64_t bytes = 0, inode = 0;
  int64_t changed = 0;  // Unix seconds
  bool operator==(const FileFacts&) const = default;
};

struct RunListing {
  bool exists = false;                     // the folder
  double zone_seconds = 0;                 // the host's local time minus UTC
  std::map<std::string, FileFacts> files;  // by path below the folder

  bool has(const std::string& path) const { return files.contains(path); }
};

// Parses the output of detail::kListRun. Names that could lead out of a folder are left out, since
// a host is not trusted with them.
RunListing read_run_listing(std::string_view text);

// Whether a path names something below the folder that it is joined to, and nothing of the
// fetch's own: relative, no part "..", no control characters.
bool stays_below(std::string_view path);

}  // namespace lockstep
