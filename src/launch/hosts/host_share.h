// Which files of prepared data go to all hosts, and which to one of them.
#pragma once

#include <string>
#include <vector>

#include "launch/hosts/program_files.h"

namespace lockstep {

struct SharedOut {
  std::vector<Piece> common;             // for all hosts
  std::vector<std::vector<Piece>> part;  // by host
};

// Deals the shards, and other files of more than 1 MiB that are no index, out to `hosts` hosts in
// the order of their paths. Files that manifest.json does not name are left out. Throws ConfigError
// when `folder` has no manifest.json.
SharedOut share_out(const std::string& folder, std::size_t hosts);

}  // namespace lockstep
