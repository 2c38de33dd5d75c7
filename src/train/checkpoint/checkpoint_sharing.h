// Shares checkpoints among ranks that may have no common file system. Rank 0 keeps the run folder,
// and so does the first rank of every machine that does not see rank 0's: losing a machine loses
// nothing. On resuming, the rank with the newest complete checkpoint reads it and sends it to all
// others.
#pragma once

#include <optional>
#include <string>

#include "dist/collectives/world.h"
#include "train/checkpoint/checkpoint.h"
#include "train/folder/run_folder.h"

namespace lockstep {

// Returns whether this rank writes checkpoints to `folder`. Rank 0 does; with `every_machine`, so
// does the first rank of each machine that does not see rank 0's folder, which it finds out by
// looking for a temporary file that rank 0 puts there. Collective.
bool keeps_checkpoints(World& world, const RunFolder& folder, bool every_machine);

struct SharedCheckpoint {
  int holder = 0;    // the rank that reads it
  std::string path;  // on its machine
  int64_t step = 0;
};

// Returns the newest complete checkpoint in the folders of the ranks that keep one (the lowest
// rank's where several have it), or nothing. No checkpoint may be under way. Collective.
std::optional<SharedCheckpoint> newest_of_all_ranks(World& world, const RunFolder& folder,
                                                    bool keeps);

// Restores `content` on every rank, bit by bit as load_checkpoint() would. Throws on every rank
// what the holder throws. Collective.
RunPosition load_from_holder(World& world, const SharedCheckpoint& checkpoint,
                             CheckpointContent& content);

}  // namespace lockstep
