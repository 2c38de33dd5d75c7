#pragma once

#include <optional>

#include "commands/command_line.h"
#include "train/config/run_config.h"

namespace lockstep {

int train(const Arguments& arguments);

// The configuration that `lockstep train ARGUMENTS` would go by, for who starts it; without a run
// folder when none would be written. Nothing when it would only print help. Throws ConfigError.
std::optional<RunConfig> config_of_train(const Arguments& arguments);

}  // namespace lockstep
