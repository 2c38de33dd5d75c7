// What lies where in a mirror, which looks like a run folder: FILE and FOLDER/FILE of the run,
// checkpoints/step_N/FILE, of which DONE is written last, and run.json, which says whose it is.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "data/store/object_store.h"
#include "train/folder/run_folder.h"

namespace lockstep {

inline constexpr const char* kRunIdentity = "run.json";

// Returns "checkpoints/step_900".
std::string mirrored_checkpoint(int64_t step);

struct MirrorListing {
  std::map<int64_t, std::vector<StoredObject>> checkpoints;  // by step, complete or not
  std::vector<StoredObject> files;                           // the run's others
  bool has_identity = false;

  bool is_complete(int64_t step) const;         // has DONE
  std::vector<int64_t> complete_steps() const;  // newest first
};
MirrorListing list_mirror(ObjectStore& store);

struct MirroredFile {
  int64_t bytes = 0;
  std::string sha256;
};
// Parses DONE. Throws DataError, naming `place`, when it is damaged.
std::map<std::string, MirroredFile> parse_done(const std::string& text, const std::string& place);

// Returns the steps of the best checkpoints that state.json names; empty where it is damaged.
std::set<int64_t> best_steps_of_state(const std::string& state);
// Returns the best step by `metric` (empty: the first), or nothing where none was evaluated.
// Throws DataError for a metric that was not watched.
std::optional<int64_t> best_step_of_state(const std::string& state, const std::string& metric);

// Returns the run's identity, RUN/run.json; empty where it has none yet.
std::string run_identity(const RunFolder& folder);
// Returns the identity in the mirror; empty where there is none.
std::string mirror_identity(ObjectStore& store);
// Gives the run an identity if it has none, and puts it into the mirror. Throws ConfigError when
// the mirror holds complete checkpoints of another run.
void claim_mirror(ObjectStore& store, const std::string& address, const RunFolder& folder);

}  // namespace lockstep
