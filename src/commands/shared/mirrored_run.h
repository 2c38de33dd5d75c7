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

struct AddressFetch {
  std::string address;
  fs::path to;              // empty: the last part of the address
  std::string checkpoints;  // newest, all or none
};
// `lockstep fetch ADDRESS`. Returns the exit code.
int fetch_address(AddressFetch wanted);

}  // namespace lockstep
