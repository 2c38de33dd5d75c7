// A lab of hosts that share nothing, but begin with the program, its Python environment and a
// folder of the test, each at the path that it has on this machine, as launchers of others want.
#pragma once

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "netlab/lab.h"

namespace lockstep {

// Returns the lab's file. What hosts write stays their own.
inline std::string unshared_lab(const std::vector<std::string>& hosts, const fs::path& folder) {
  const fs::path python = LOCKSTEP_PYTHON;
  std::vector<fs::path> paths = {folder, fs::path(LOCKSTEP_PROGRAM).parent_path(),
                                 python.parent_path().parent_path()};
  const fs::path base = fs::canonical(python).parent_path().parent_path();
  if (base != "/usr") paths.push_back(base);
  std::vector<std::string> contents;
  for (const fs::path& path : paths) contents.push_back(fmt::format("'{0}:{0}'", path.string()));
  return fmt::format("[hosts]\nnames = ['{}']\nfiles = 'own'\ncontents = [{}]\n",
                     join(hosts, "', '"), join(contents, ", "));
}

// Gives the hosts what the owner of a cluster gives them: each other's names, and a key with which
// root of one logs in at the others.
inline void introduce(const Lab& lab, const std::vector<std::string>& hosts) {
  const std::string names = read_file(lab.folder() / "hosts/control/etc_hosts");
  for (const std::string& host : hosts) {
    // The file is mounted in the host: no other may take its place.
    std::ofstream(lab.folder() / "hosts" / host / "etc_hosts") << names;
    const fs::path home = lab.path_on_this_machine(host, "/root/.ssh");
    fs::copy_file(lab.folder() / "ssh/key", home / "id_ed25519");
    fs::copy_file(lab.folder() / "ssh/known_hosts", home / "known_hosts");
  }
}

}  // namespace lockstep
