#pragma once

#include <optional>

#include "commands/shared/command_line.h"
#include "train/config/run_config.h"

namespace lockstep {

int train(const Arguments& arguments);

// Returns the configuration that `lockstep train ARGUMENTS` would use, for whoever starts it,
// without a run folder when none would be written. Returns nothing when it would only print help.
// Throws ConfigError.
std::optional<RunConfig> config_of_train(const Arguments& arguments);

// Returns the word of the arguments that names the configuration file. Throws ConfigError when
// there is not exactly one.
std::string file_of_train(const Arguments& arguments);

}  // namespace lockstep
