// Looks at checkpoints without a network: what a folder holds, what is in one, how two differ
// (`lockstep checkpoint`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "train/folder/checkpoint_folder.h"
#include "train/folder/run_position.h"

namespace lockstep {

struct ListedCheckpoint {
  fs::path path;                        // of step_N, or of step_N.part, which was not finished
  int64_t step = 0, bytes = 0;          // of all its files
  double written = 0;                   // seconds since 1970, when DONE was; 0 without one
  std::string damage;                   // empty: it is whole, as far as `check` says
  std::optional<RunPosition> position;  // where state.json can be read
};
// Returns everything in a run's checkpoints folder, the newest first, unfinished ones included.
// A folder that is not there holds none. What the run removes meanwhile is left out.
std::vector<ListedCheckpoint> list_checkpoints(const fs::path& folder, CheckpointCheck check);
ListedCheckpoint list_checkpoint(const fs::path& checkpoint, CheckpointCheck check);

// What is true of the numbers of one tensor; of no numbers all are 0.
struct TensorFigures {
  double least = 0, largest = 0, rms = 0;  // of those that are finite
  int64_t numbers = 0, not_finite = 0;
};
struct InspectedTensor {
  std::string name, dtype;
  std::vector<int64_t> shape;
  TensorFigures figures;
};
// Returns the tensors of a file in its order. Throws DataError when it is damaged.
std::vector<InspectedTensor> inspect_tensors(const fs::path& file);

// How a tensor of one file differs from that of the same name in another.
struct TensorDifference {
  std::string name;
  std::string why;  // "absent in A", "shape [2, 3], there [3, 2]"; empty: by its numbers
  double largest = 0, rms = 0;  // of the differences; infinite where one side is not finite alone
  double relative = 0;          // rms of the differences over that of the first's numbers
  int64_t numbers = 0, differing = 0;  // differing in any bit
};
// Returns the tensors that differ in any bit, in the order of the first file, then of the second.
// Throws DataError when a file is damaged.
std::vector<TensorDifference> differing_tensors(const fs::path& first, const fs::path& second);

// Returns the keys of state.json that differ, with both values as JSON; "nothing" where a key is
// absent. Throws DataError when a file is missing or damaged.
struct StateDifference {
  std::string key, first, second;
};
std::vector<StateDifference> differing_states(const fs::path& first, const fs::path& second);

}  // namespace lockstep
