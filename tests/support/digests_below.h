// What a folder holds, for comparisons.
#pragma once

#include <map>
#include <string>

#include "base/digest.h"
#include "base/file.h"

namespace lockstep {

// Returns the digests of all files by their names below the folder, without files on their way
// ("incoming"); nothing when there is no such folder.
inline std::map<std::string, std::string> digests_below(const fs::path& folder) {
  std::map<std::string, std::string> out;
  if (!fs::exists(folder)) return out;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder).string();
    if (entry.is_regular_file() && name.find("incoming") == std::string::npos) {
      out[name] = sha256_of_file(entry.path());
    }
  }
  return out;
}

}  // namespace lockstep
