// Checks of a configuration that concern several keys, or what a single field cannot check.
#pragma once

#include "train/config/run_config.h"

namespace lockstep {

// Adds all mistakes to `source`, and settles keys that depend on which others were given.
void check_run_config(RunConfig& config, ConfigSource& source);

}  // namespace lockstep
