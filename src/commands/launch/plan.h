// lockstep plan: predicts what a run will take.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int plan(const Arguments& arguments);

}  // namespace lockstep
