// What of a configuration goes to hosts that share nothing with this machine, and where it is
// there: paths in the folder of the job keep their names, what is elsewhere goes below inputs/.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/fields.h"
#include "launch/hosts/program_files.h"

namespace lockstep {

// A path that a job reads.
struct JobInput {
  std::string key;    // "data.corpus"; empty: the configuration file itself
  std::string value;  // as it is written
  std::string there;  // what it is on the hosts: below the folder of the job, or `value`
  bool sent = false;  // false: it is not here; the hosts must have it
  int64_t files = 0, bytes = 0;

  bool moved() const { return there != value; }
};

struct PushPlan {
  std::vector<JobInput> inputs;  // the configuration first
  std::vector<Piece> pieces;     // sorted by path, below the folder of the job
};

struct PushRequest {
  fs::path folder;         // of the job, here
  fs::path configuration;  // the file
  std::vector<InputPaths::Entry> inputs;
  fs::path run_folder;  // is not sent, even where it lies in an input; may be empty
};

// Throws ConfigError for a name that cannot be sent, DataError for a file that cannot be read.
PushPlan plan_push(const PushRequest& request, KnownHashes& hashes);

// Returns the word of the command line that sets a key to a path.
std::string path_setting(const std::string& key, const std::string& path);

// Returns `path` relative to `folder` when it lies in it: "data/corpus", "." for the folder itself;
// empty when it does not. Both are taken as they are written, without links.
std::string path_within(const fs::path& folder, const fs::path& path);

}  // namespace lockstep
