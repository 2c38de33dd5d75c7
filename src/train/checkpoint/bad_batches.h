// Keeps the batches of steps that the guard took out, for a look at them (docs/training.md#guards).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/file.h"
#include "tasks/task.h"

namespace lockstep {

// Writes FOLDER/step_N.rank_R.safetensors with the tensors of this rank's micro-batches, their
// names preceded by the number of the micro-batch: "0.source.tokens". Nothing for batches without
// tensors. Logs a warning where the disk refuses.
void keep_batch(const fs::path& folder, int64_t step, int rank,
                std::span<const std::unique_ptr<Batch>> micro_batches);

}  // namespace lockstep
