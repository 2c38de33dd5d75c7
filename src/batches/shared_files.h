// Files of prepared data that a host lacks, brought whole from a host that has them before they are
// opened: for token files and texts, which are read at random places from the first step on.
#pragma once

#include <functional>
#include <vector>

#include "base/file.h"
#include "data/manifest/manifest.h"
#include "dist/collectives/world.h"

namespace lockstep {

// Brings the files that `list` returns (called on every rank, it may throw) and `folder` lacks.
// They are written aside, checked against their SHA-256 and renamed. `world`: null for a process
// that is alone, for which nothing is done. Where all hosts have all files nothing is opened.
// Collective; throws on all ranks: DataError for files that nobody has right; MachineError for a
// host that is lost or a full disk. A file that nobody has is logged, with the hosts asked, and
// left to who opens it.
void fetch_missing_files(World* world, const fs::path& folder,
                         const std::function<std::vector<FileRecord>()>& list);

}  // namespace lockstep
