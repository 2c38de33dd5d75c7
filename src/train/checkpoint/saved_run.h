// A run that is there already: its configuration, its network, the weights of one checkpoint. Or
// what `lockstep export` made of one.
#pragma once

#include <string>

#include "train/config/run_config.h"
#include "train/config/run_folder.h"

namespace lockstep {

inline constexpr const char* kCheckpointHelp = "best, best-METRIC, newest or step_N";

struct SavedRun {
  RunConfig config;
  fs::path checkpoint;
};

struct SavedRunOptions {
  std::string checkpoint = "best";  // as find_checkpoint() takes it
  std::vector<std::string> words;   // key=value, over the saved configuration
  int local_rank = 0, local_size = 1;
};

// Opens a run to use its model. The averaged weights are used where there are some.
// A folder with a config.json is an exported model, which has no checkpoints to choose from; a
// BERT's may be any of transformers, or hf:OWNER/NAME[@REVISION] of the Hugging Face hub.
// ConfigError: no run. DataError: no complete checkpoint, or one of another architecture.
SavedRun open_saved_run(const fs::path& folder, const SavedRunOptions& options);

}  // namespace lockstep
