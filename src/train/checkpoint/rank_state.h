// What differs from rank to rank in a run and must be in its checkpoints: errors that a hook feeds
// back, the optimizers of groups that take local steps, running statistics of batch norms. One rank
// reads and writes all of it, so that no other needs to see the folder.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "dist/gradients/comm_hooks.h"

namespace lockstep {

class TrainingState;

struct RankState {
  std::vector<HookArray> arrays;          // flat, fp32 or int64; shared with their owners
  std::map<std::string, double> numbers;  // by name

  bool empty() const { return arrays.empty() && numbers.empty(); }
};

// The states of all ranks, by rank, on rank 0; none where no rank has anything of its own, as in
// the usual run. Collective.
std::vector<RankState> gather_rank_states(TrainingState& training);

// CHECKPOINT/rank_N.safetensors for every rank whose state is not empty.
void write_rank_states(const fs::path& checkpoint, const std::vector<RankState>& states);

// Where a checkpoint lies, and who sees it.
struct CheckpointPlace {
  fs::path path;   // on the machine of the holder
  int holder = 0;  // a rank
};
// Restores what write_rank_states() wrote; what is not there, or of other ranks, begins anew, and
// the run says so. training.position is that of the checkpoint. Collective. Throws DataError, on
// the holder, for a damaged file.
void restore_rank_states(TrainingState& training, const CheckpointPlace& place);

}  // namespace lockstep
