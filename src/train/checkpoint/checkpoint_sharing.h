// Checkpoints of a run whose ranks may share no file system. Rank 0 keeps the run folder, and so
// does the first rank of every machine that does not see it: losing a machine loses nothing. To go
// on, the one that holds the newest complete checkpoint reads it and all others get it from there.
#pragma once

#include <optional>
#include <string>

#include "dist/collectives/world.h"
#include "train/checkpoint/checkpoint.h"
#include "train/config/run_folder.h"

namespace lockstep {

// Collective. Whether this rank writes checkpoints to `folder`: rank 0 does; where `every_machine`,
// so does the first rank of each machine that does not see rank 0's folder (it looks for a file
// that rank 0 puts there for the moment).
bool keeps_checkpoints(World& world, const RunFolder& folder, bool every_machine);

struct SharedCheckpoint {
  int holder = 0;    // the rank that reads it
  std::string path;  // on its machine
  int64_t step = 0;
};

// Collective. The newest complete checkpoint in the folders of the ranks that keep one; the lowest
// rank's where several have it. Nothing when there is none.
std::optional<SharedCheckpoint> newest_of_all_ranks(World& world, const RunFolder& folder,
                                                    bool keeps);

// Collective. Restores `content` on every rank as load_checkpoint() would, bit by bit. Throws on
// every rank what the holder throws.
RunPosition load_from_holder(World& world, const SharedCheckpoint& checkpoint,
                             CheckpointContent& content);

}  // namespace lockstep
