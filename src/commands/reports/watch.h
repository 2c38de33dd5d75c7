// lockstep watch RUN: shows what every rank is doing; with --logs, the logs of all ranks merged.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int watch(const Arguments& arguments);

}  // namespace lockstep
