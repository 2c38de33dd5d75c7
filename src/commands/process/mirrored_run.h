// What commands that use a run do with the address of its second home (train/mirror) in place of
// its folder.
#pragma once

#include <string>

#include "train/checkpoint/saved_run.h"

namespace lockstep {

// Returns `name`, or for an address the folder below $XDG_CACHE_HOME/lockstep/runs (~/.cache) to
// which what its model needs and the checkpoint asked for were brought; `options` then name that
// checkpoint. Of the ranks of a host one fetches and the others wait.
std::string local_run(const std::string& name, SavedRunOptions& options);

}  // namespace lockstep
