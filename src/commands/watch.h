// lockstep watch RUN: what every rank does right now; with --logs the logs of all ranks as one.
#pragma once

#include "commands/command_line.h"

namespace lockstep {

int watch(const Arguments& arguments);

}  // namespace lockstep
