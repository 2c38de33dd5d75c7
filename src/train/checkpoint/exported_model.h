// Models that `lockstep export` wrote, and image classifiers of others, opened to be used: what
// their config.json says as a run's configuration.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "train/config/run_config.h"

namespace lockstep {

// Architecture, number format and use (decoding, what is done to an image) of the model in a folder
// with a config.json; key=value `words` go over them. DataError: damaged, or of no kind that is
// known.
RunConfig exported_config(const fs::path& folder, const std::vector<std::string>& words);

// The folder's weights into a task that was opened with that configuration. DataError names what is
// missing or of another shape.
void load_exported_weights(const fs::path& folder, Task& task);

}  // namespace lockstep
