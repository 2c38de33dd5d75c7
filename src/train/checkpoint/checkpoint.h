// Checkpoints: everything that a run needs to go on (docs/run-folder.md#checkpoints), saved and
// restored.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "formats/tensor_file.h"
#include "nn/parameters.h"
#include "optim/optimizer.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/rank_state.h"
#include "train/checkpoint/run_position.h"

namespace lockstep {

struct CheckpointContent {
  RunPosition position;
  const Parameters* parameters = nullptr;
  torch::Tensor average;  // fp32 [total] or undefined
  // As Parameters::buffers(), for the weights and for their average: what is saved, or read into.
  // Undefined: the parameters' own; none for the average.
  torch::Tensor buffers, average_buffers;
  OptimizerState optimizer;             // its arrays [total] are read into
  std::map<std::string, double> guard;  // StepGuard::state()
  std::vector<StateArray> outer;        // of local steps: arrays [total] that are read into
  std::vector<RankState> ranks;         // what differs by rank; restore_rank_state() reads it
};

// Writes FOLDER/step_N; an incomplete one of that name is replaced. Returns the bytes written.
// Throws MachineError when the disk refuses; older checkpoints stay untouched.
int64_t save_checkpoint(const fs::path& folder, const CheckpointContent& content);

// Restores weights, average, optimizer state. DataError for another architecture: which tensor, its
// expected and found shape.
RunPosition load_checkpoint(const fs::path& checkpoint, CheckpointContent& content);

// The part that is no tensor: a checkpoint's state.json, as text, and what it says. DataError when
// it is damaged.
fs::path state_file(const fs::path& checkpoint);
void read_state(const std::string& text, const fs::path& place, CheckpointContent& content);

// Reads weights_for_use(). DataError for another architecture: which tensor, its expected and found
// shape.
void load_weights_for_use(const fs::path& checkpoint, Parameters& parameters);

// Writes FOLDER/step_N with weights alone: one to use or to begin from, not to resume.
void save_weights(const fs::path& folder, int64_t step, const std::vector<TensorEntry>& weights);

}  // namespace lockstep
