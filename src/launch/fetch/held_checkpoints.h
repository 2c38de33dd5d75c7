// Which checkpoints of a run its hosts have, and which of them are wanted here.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lockstep {

enum class CheckpointChoice { kNewestAndBest, kAll, kNone };

struct DoneFile {
  std::string name, sha256;
  int64_t bytes = 0;
};

// A complete checkpoint, by its host's DONE and state.json.
struct HeldCheckpoint {
  std::string host;
  int64_t step = 0;
  std::vector<DoneFile> files;
  std::string done_sha256;       // of DONE itself
  std::set<int64_t> best_steps;  // the best by each metric, as known at this step

  std::string name() const;  // "checkpoints/step_900"
};

// The step of "checkpoints/step_900/DONE" and the like; nothing for other paths.
std::optional<int64_t> step_in_path(const std::string& path);

// Throws DataError, without a place, when DONE or state.json is damaged.
std::vector<DoneFile> read_done(const std::string& text);
std::set<int64_t> read_best_steps(const std::string& state_json);

// The steps of checkpoints to bring, of those that are held.
std::set<int64_t> choose_steps(const std::vector<HeldCheckpoint>& held, CheckpointChoice choice);

}  // namespace lockstep
