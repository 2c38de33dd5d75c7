// Handles the state that differs from rank to rank and must be in checkpoints: error feedback of
// communication hooks, optimizers of groups that take local steps, running statistics of batch
// norms. A rank that keeps checkpoints writes all of it, and one reads it for all, so that no other
// needs to see the folder.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "dist/gradients/comm_hooks.h"

namespace lockstep {

class TrainingState;
struct CheckpointContent;

struct RankState {
  std::vector<HookArray> arrays;          // flat, fp32 or int64; shared with their owners
  std::map<std::string, double> numbers;  // by name

  bool empty() const { return arrays.empty() && numbers.empty(); }
};

// Returns on ranks that keep checkpoints the states of all ranks, by rank; empty where no rank has
// state of its own, as in the usual run. A group's optimizer is with its first rank. So whichever
// machine is lost, the others have all of it. Up to `bytes_to_everyone`, counted over all ranks,
// they go to all ranks at once, in the time of two delays of the network; more than that goes from
// rank to rank. Collective.
std::vector<RankState> gather_rank_states(TrainingState& training, bool keeps,
                                          int64_t bytes_to_everyone = int64_t{16} << 20);

// Makes the optimizer and guard of what gather_rank_states() has filled in those of rank 0's group,
// which checkpoints of all machines hold as theirs: any of them restores every group.
void take_first_group(CheckpointContent& content);

// Writes CHECKPOINT/rank_N.safetensors for every rank whose state is not empty.
void write_rank_states(const fs::path& checkpoint, const std::vector<RankState>& states);

// Says where a checkpoint lies and which rank sees it.
struct CheckpointPlace {
  fs::path path;   // on the machine of the holder
  int holder = 0;  // a rank
};
// Restores what write_rank_states() wrote. What the checkpoint lacks, or has for other ranks, falls
// back: error feedback starts from zero and a group's optimizer continues from rank 0's, which the
// log says, and statistics from their mean. REQUIRES that training.position is that of the
// checkpoint. Throws DataError, on the holder, for a damaged file. Collective.
void restore_rank_states(TrainingState& training, const CheckpointPlace& place);

}  // namespace lockstep
