// Opens a run that exists (its configuration, network and the weights of one checkpoint) or a model
// that `lockstep export` made of one.
#pragma once

#include <string>

#include "train/config/run_config.h"
#include "train/folder/run_folder.h"

namespace lockstep {

inline constexpr const char* kCheckpointHelp = "best, best-METRIC, newest or step_N";

struct SavedRun {
  RunConfig config;
  fs::path checkpoint;
};

struct SavedRunOptions {
  std::string checkpoint = "best";  // as find_checkpoint() takes it
  std::vector<std::string> words;   // key=value, overriding the saved configuration
  int local_rank = 0, local_size = 1;
};

// Opens a run to use its model, with the averaged weights where there are some. A folder with a
// config.json is an exported model and has no checkpoints to choose from; for BERT it may come from
// transformers, and hf:OWNER/NAME[@REVISION] names one on the Hugging Face hub. Throws ConfigError
// when there is no run, DataError when there is no complete checkpoint or it has another
// architecture.
SavedRun open_saved_run(const fs::path& folder, const SavedRunOptions& options);

}  // namespace lockstep
