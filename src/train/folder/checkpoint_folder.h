// Manages the folder of a run's checkpoints. Each checkpoint is written aside, synced and renamed.
// DONE is written last and lists every file with its size and hash, so that a checkpoint is either
// whole or skipped (docs/run-folder.md#checkpoints).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/large_file.h"

namespace lockstep {

// Returns "step_1200".
std::string checkpoint_name(int64_t step);
// Returns 1200 for a path that ends in "step_1200", -1 for other names.
int64_t checkpoint_step(const fs::path& checkpoint);

// Lets `write` fill a folder beside FOLDER/step_N, adds DONE and renames the folder, replacing an
// incomplete checkpoint of that name. Digests of files that `write` tells, by name, need not be
// taken again. Returns the bytes written. Throws MachineError when the disk refuses; older
// checkpoints stay untouched.
using WrittenFiles = std::map<std::string, WrittenFile>;
int64_t write_checkpoint(const fs::path& folder, int64_t step,
                         const std::function<WrittenFiles(const fs::path& aside)>& write);

// Replaces one file of the complete checkpoint FOLDER/step_N, and what DONE says of it, at one
// stroke where the file system can exchange two folders: a reader, or a crash, finds the old
// checkpoint or the new one, each whole. Throws MachineError when the disk refuses.
void replace_in_checkpoint(const fs::path& folder, int64_t step, const std::string& name,
                           const std::string& content);

// Puts in order what a process left that was killed: a whole checkpoint that lacks its name alone
// gets it, and one that was not finished goes, where a later one is whole. REQUIRES that nobody
// writes checkpoints into the folder meanwhile.
void tidy_checkpoints(const fs::path& folder);

// Returns the folder's complete checkpoints, newest first. Skips incomplete or damaged ones with a
// warning each.
std::vector<fs::path> complete_checkpoints(const fs::path& folder);
// Returns the newest complete checkpoint. Skips newer ones that are damaged or half written, with a
// warning each.
std::optional<fs::path> newest_complete_checkpoint(const fs::path& folder);
// Returns what is wrong with the checkpoint, empty when it is whole. kSizes takes no hashes, which
// needs every byte of it.
enum class CheckpointCheck { kSizes, kHashes };
std::string checkpoint_damage(const fs::path& checkpoint,
                              CheckpointCheck check = CheckpointCheck::kHashes);

// Return the paths of all step_N of a folder, newest first, whole or not; and those of step_N.part,
// which a process that was killed, or one that still writes, has left. A folder that is not there
// has none. Throw MachineError for one that cannot be read.
inline constexpr const char* kUnfinished = ".part";
std::vector<fs::path> all_checkpoints(const fs::path& folder);
std::vector<fs::path> unfinished_checkpoints(const fs::path& folder);

// Returns the file of weights to use a model with: the moving average where there is one.
fs::path weights_for_use(const fs::path& checkpoint);
// Removes a checkpoint so that what is left of it after a crash does not look whole. Logs a warning
// where it cannot.
void remove_checkpoint(const fs::path& checkpoint);
// Removes old_checkpoints().
void remove_old_checkpoints(const fs::path& folder, int64_t keep, const std::set<int64_t>& best);
// Returns all checkpoints but the newest `keep` and those of the steps in `best`.
std::vector<fs::path> old_checkpoints(const fs::path& folder, int64_t keep,
                                      const std::set<int64_t>& best);

// Returns the checkpoint asked for: "best" (by the first metric), "best-METRIC", "newest" or a
// name. Throws DataError when there is none.
fs::path find_checkpoint(const fs::path& folder, const std::string& which);
// Returns the checkpoints kept as the best by `metric` (empty: the first metric), best first.
// Throws DataError for a metric that was not watched or when no checkpoint is complete.
std::vector<fs::path> best_checkpoints(const fs::path& folder, const std::string& metric);

}  // namespace lockstep
