// Starts a run from the weights of another (run.load_model): takes its model, not its position.
#pragma once

#include "base/file.h"
#include "tasks/task.h"

namespace lockstep {

// `source` is a run folder (its best checkpoint is used), a checkpoint, a tensor file, or a folder
// with model.safetensors. Foreign formats are left to Task::load_foreign_weights(). From any other
// file, each weight that it holds under the same name and shape is copied, averaged weights where
// there are some; the log says which weights keep their initial values and why. Throws ConfigError
// when there is no such thing, DataError when no weight matches.
void load_initial_weights(const fs::path& source, Task& task);

}  // namespace lockstep
