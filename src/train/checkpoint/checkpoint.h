// Saves and restores checkpoints: everything that a run needs to resume
// (docs/run-folder.md#checkpoints).
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "formats/tensor_file.h"
#include "nn/parameters.h"
#include "optim/optimizers/optimizer.h"
#include "train/checkpoint/rank_state.h"
#include "train/folder/checkpoint_folder.h"
#include "train/folder/run_position.h"

namespace lockstep {

struct CheckpointContent {
  RunPosition position;
  const Parameters* parameters = nullptr;
  torch::Tensor weights;  // fp32 [total]; undefined: those of `parameters`
  torch::Tensor average;  // fp32 [total] or undefined
  // Buffers of the weights and of their average, laid out as Parameters::buffers(), to save or to
  // read into. Undefined `buffers` mean those of `parameters`; undefined `average_buffers`, none.
  torch::Tensor buffers, average_buffers;
  OptimizerState optimizer;             // load reads into its arrays [total]
  std::map<std::string, double> guard;  // StepGuard::state()
  std::vector<StateArray> outer;        // of local steps: arrays [total]; load reads into them
  std::vector<RankState> ranks;         // what differs by rank; restore_rank_state() reads it
};

// Returns a copy on the CPU that shares no memory with the training but the names and shapes of
// `parameters`, so that it can be saved while the training goes on.
CheckpointContent own_copy(const CheckpointContent& content);

// Writes FOLDER/step_N, replacing an incomplete checkpoint of that name, and returns the bytes
// written. Throws MachineError when the disk refuses; older checkpoints stay untouched.
int64_t save_checkpoint(const fs::path& folder, const CheckpointContent& content);

// Restores weights, average and optimizer state. Throws DataError for another architecture, naming
// the tensor, its expected and its found shape.
RunPosition load_checkpoint(const fs::path& checkpoint, CheckpointContent& content);

// Replaces the position in FOLDER/step_N, which is that of `position` but lacks an evaluation.
// Throws MachineError when the disk refuses, DataError for a damaged checkpoint.
void renew_position(const fs::path& folder, const RunPosition& position);

// The path of a checkpoint's state.json, which holds all that is no tensor, and the parser of its
// text. Throws DataError when the text is damaged.
fs::path state_file(const fs::path& checkpoint);
void read_state(const std::string& text, const fs::path& place, CheckpointContent& content);

// Reads weights_for_use(). Throws DataError for another architecture, naming the tensor, its
// expected and its found shape.
void load_weights_for_use(const fs::path& checkpoint, Parameters& parameters);

// Writes FOLDER/step_N with weights alone: a checkpoint to use or to start from, not to resume.
void save_weights(const fs::path& folder, int64_t step, const std::vector<TensorEntry>& weights);

}  // namespace lockstep
