// Brings a run from its mirror to a folder here. What arrives is checked against DONE; a checkpoint
// with a wrong hash is passed over for the next older one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/store/object_store.h"
#include "train/mirror/mirror_keys.h"

namespace lockstep {

class MirroredRun {
 public:
  // Lists what is there. Throws ConfigError when no run is.
  explicit MirroredRun(const std::string& address);

  std::vector<int64_t> steps() const { return listing_.complete_steps(); }  // newest first
  std::string identity();
  std::string config();  // the text of its config.toml

  enum class Files { kAll, kForUse };  // kForUse: not metrics, times, events, logs, trace
  // Brings the run's files, except those that the folder has with `keep`.
  void fetch_files(const fs::path& folder, Files which, bool keep);

  // Brings one checkpoint into FOLDER/checkpoints, unless it is there whole. A download that broke
  // off goes on. Throws DataError for a wrong hash.
  fs::path fetch_checkpoint(const fs::path& folder, int64_t step);
  // Brings the newest one that arrives whole, if it is newer than `than`; passes over damaged ones
  // with a warning. Returns nothing when there is none.
  std::optional<fs::path> fetch_newest(const fs::path& folder, int64_t than = -1);
  // Brings "newest", "best", "best-METRIC" or a name such as "step_900"; where the best is damaged,
  // the newest. Throws DataError when there is none.
  fs::path fetch_chosen(const fs::path& folder, const std::string& which);
  // Returns the steps that are the newest or among the best.
  std::vector<int64_t> newest_and_best();

  const std::string& address() const { return address_; }

 private:
  std::string state_of(int64_t step);

  std::string address_;
  std::unique_ptr<ObjectStore> store_;
  MirrorListing listing_;
};

}  // namespace lockstep
