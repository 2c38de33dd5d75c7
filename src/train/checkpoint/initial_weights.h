// Beginning a run with the weights of another (run.load_model): the model only, not where it stood.
#pragma once

#include "base/file.h"
#include "tasks/task.h"

namespace lockstep {

// `source`: a run folder (its best checkpoint), a checkpoint, a tensor file, or a folder with
// model.safetensors. What the task knows to read (Task::load_foreign_weights) it reads; of all else
// every weight is copied that is there by the same name and shape, the averaged one where there is
// one, and which others were left as they are, and why, is logged. Throws ConfigError when there is
// no such thing, DataError when no weight matches.
void load_initial_weights(const fs::path& source, Task& task);

}  // namespace lockstep
