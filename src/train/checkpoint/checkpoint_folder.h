// The folder of a run's checkpoints: each is written aside, synced and renamed; DONE is written
// last and lists every file with its size and hash, so that a checkpoint is whole or passed over
// (docs/run-folder.md#checkpoints).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

// "step_1200".
std::string checkpoint_name(int64_t step);
// 1200 of a path that ends in "step_1200"; -1 for other names.
int64_t checkpoint_step(const fs::path& checkpoint);

// Has `write` fill a folder beside FOLDER/step_N, adds DONE and renames it; an incomplete one of
// that name is replaced. Returns the bytes written. Throws MachineError when the disk refuses;
// older checkpoints stay untouched.
int64_t write_checkpoint(const fs::path& folder, int64_t step,
                         const std::function<void(const fs::path& aside)>& write);

// Complete checkpoints of the folder, newest first. Incomplete or damaged ones are passed over with
// a warning each.
std::vector<fs::path> complete_checkpoints(const fs::path& folder);
// The newest of them; later ones that are not whole, and what a kill left half written, are passed
// over with a warning each.
std::optional<fs::path> newest_complete_checkpoint(const fs::path& folder);
// Empty when the checkpoint is whole, else what is wrong with it.
std::string checkpoint_damage(const fs::path& checkpoint);

// The weights to use a model with: the moving average where there is one.
fs::path weights_for_use(const fs::path& checkpoint);
// Removes all but the newest `keep` and those of the steps in `best`.
void remove_old_checkpoints(const fs::path& folder, int64_t keep, const std::set<int64_t>& best);

// The checkpoint that is asked for: "best" (by the first metric), "best-METRIC", "newest" or a
// name. DataError when there is none.
fs::path find_checkpoint(const fs::path& folder, const std::string& which);
// Those that are kept for being the best by `metric` (empty: the first one), best first. DataError
// for a metric that was not watched.
std::vector<fs::path> best_checkpoints(const fs::path& folder, const std::string& metric);

}  // namespace lockstep
