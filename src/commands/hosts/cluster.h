// lockstep cluster: does on several machines at once what people otherwise do by hand.
#pragma once

#include "commands/shared/command_line.h"
#include "commands/shared/host_arguments.h"

namespace lockstep {

// Runs lockstep cluster list|ssh|check|setup|run|rules: see docs/launch.md#lockstep-cluster.
int cluster(const Arguments& arguments);

// These are the larger parts, each with its own options.
int cluster_check(const Arguments& arguments);
int cluster_setup(const Arguments& arguments);
int cluster_rules(const Arguments& arguments);

}  // namespace lockstep
