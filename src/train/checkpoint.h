// Checkpoints: everything that a run needs to go on, written aside, synced and renamed; DONE is
// written last and lists every file with its size and hash, so that a checkpoint is whole or passed
// over (docs/run-folder.md).
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "formats/tensor_file.h"
#include "nn/parameters.h"
#include "optim/optimizer.h"
#include "train/rank_state.h"
#include "train/run_position.h"

namespace lockstep {

struct CheckpointContent {
  RunPosition position;
  const Parameters* parameters = nullptr;
  torch::Tensor average;  // fp32 [total] or undefined
  // As Parameters::buffers(), for the weights and for their average: what is saved, or read into.
  // Undefined: the parameters' own; none for the average.
  torch::Tensor buffers, average_buffers;
  OptimizerState optimizer;             // its arrays [total] are read into
  std::map<std::string, double> guard;  // StepGuard::state(); empty in older checkpoints
  std::vector<StateArray> outer;        // of local steps: arrays [total] that are read into
  std::vector<RankState> ranks;         // what differs by rank; restore_rank_state() reads it
};

// "step_1200".
std::string checkpoint_name(int64_t step);
// 1200 of a path that ends in "step_1200"; -1 for other names.
int64_t checkpoint_step(const fs::path& checkpoint);

// Writes FOLDER/step_N; an incomplete one of that name is replaced. Returns the bytes written.
// Throws MachineError when the disk refuses; older checkpoints stay untouched.
int64_t save_checkpoint(const fs::path& folder, const CheckpointContent& content);

// Complete checkpoints of the folder, newest first. Incomplete or damaged ones are passed over with
// a warning each.
std::vector<fs::path> complete_checkpoints(const fs::path& folder);
// The newest of them; later ones that are not whole, and what a kill left half written, are passed
// over with a warning each.
std::optional<fs::path> newest_complete_checkpoint(const fs::path& folder);
// Empty when the checkpoint is whole, else what is wrong with it.
std::string checkpoint_damage(const fs::path& checkpoint);

// Restores weights, average, optimizer state. DataError for another architecture: which tensor, its
// expected and found shape.
RunPosition load_checkpoint(const fs::path& checkpoint, CheckpointContent& content);

// The part that is no tensor: a checkpoint's state.json, as text, and what it says. DataError when
// it is damaged.
fs::path state_file(const fs::path& checkpoint);
void read_state(const std::string& text, const fs::path& place, CheckpointContent& content);

// The weights to use a model with: the moving average where there is one.
fs::path weights_for_use(const fs::path& checkpoint);
// As above. DataError for another architecture: which tensor, its expected and found shape.
void load_weights_for_use(const fs::path& checkpoint, Parameters& parameters);

// Copies the shape-alike of a file's tensors into the weights of the same names.
struct MatchedWeights {                     // of weights and buffers
  std::vector<std::string> copied, absent;  // names; absent: not in the file
  std::vector<std::string> other_shape;     // "embedding.weight [42, 16], there [40, 16]"
  std::vector<std::string> unused;          // of the file
};
MatchedWeights load_matching_weights(const fs::path& file, Parameters& parameters);

// Writes FOLDER/step_N with weights alone: one to use or to begin from, not to resume.
void save_weights(const fs::path& folder, int64_t step, const std::vector<TensorEntry>& weights);

// Removes all but the newest `keep` and those of the steps in `best`.
void remove_old_checkpoints(const fs::path& folder, int64_t keep, const std::set<int64_t>& best);

// The checkpoint that is asked for: "best" (by the first metric), "best-METRIC", "newest" or a
// name. DataError when there is none.
fs::path find_checkpoint(const fs::path& folder, const std::string& which);
// Those that are kept for being the best by `metric` (empty: the first one), best first. DataError
// for a metric that was not watched.
std::vector<fs::path> best_checkpoints(const fs::path& folder, const std::string& metric);

}  // namespace lockstep
