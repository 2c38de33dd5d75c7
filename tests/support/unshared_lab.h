// A lab of hosts that share nothing, but begin with the program, its Python environment and a
// folder of the test, each at the path that it has on this machine, as launchers of others want.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace lockstep {

// Returns the lab's file. What hosts write stays their own.
inline std::string unshared_lab(const std::vector<std::string>& hosts, const fs::path& folder) {
  std::vector<std::string> contents;
  for (const fs::path& path : {folder, fs::path(LOCKSTEP_PROGRAM).parent_path(),
                               fs::path(LOCKSTEP_PYTHON).parent_path().parent_path()}) {
    contents.push_back(fmt::format("'{0}:{0}'", path.string()));
  }
  return fmt::format("[hosts]\nnames = ['{}']\nfiles = 'own'\ncontents = [{}]\n",
                     join(hosts, "', '"), join(contents, ", "));
}

}  // namespace lockstep
