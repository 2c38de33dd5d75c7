// Checkpoints: everything that a run needs to go on, written aside, synced and renamed; DONE is
// written last and lists every file with its size and hash, so that a checkpoint is whole or passed
// over (docs/run-folder.md).
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "nn/parameters.h"
#include "optim/optimizer.h"

namespace lockstep {

// Where the run stands: after `step` steps, the next is step_in_epoch of epoch.
struct RunPosition {
  int64_t step = 0;
  int64_t epoch = 0;
  int64_t step_in_epoch = 0;
  int64_t targets_seen = 0;
  std::optional<double> best_metric;
  int64_t best_step = 0;
};

struct CheckpointContent {
  RunPosition position;
  const Parameters* parameters = nullptr;
  torch::Tensor average;     // fp32 [total] or undefined
  OptimizerState optimizer;  // its arrays [total] are read into
};

// "step_1200".
std::string checkpoint_name(int64_t step);

// Writes FOLDER/step_N; an incomplete one of that name is replaced. Returns the bytes written.
// Throws MachineError when the disk refuses; older checkpoints stay untouched.
int64_t save_checkpoint(const fs::path& folder, const CheckpointContent& content);

// Complete checkpoints of the folder, newest first. Incomplete or damaged ones are passed over with
// a warning each.
std::vector<fs::path> complete_checkpoints(const fs::path& folder);
// Empty when the checkpoint is whole, else what is wrong with it.
std::string checkpoint_damage(const fs::path& checkpoint);

// Restores weights, average, optimizer state. DataError for another architecture: which tensor, its
// expected and found shape.
RunPosition load_checkpoint(const fs::path& checkpoint, CheckpointContent& content);

// The weights to use a model with: the moving average where there is one.
void load_weights_for_use(const fs::path& checkpoint, Parameters& parameters);

// Removes all but the newest `keep` and the best.
void remove_old_checkpoints(const fs::path& folder, int64_t keep, int64_t best_step);

// The checkpoint that "best", "newest" or a name asks for. DataError when there is none.
fs::path find_checkpoint(const fs::path& folder, const std::string& which);

}  // namespace lockstep
