// lockstep plan: what a run will take, before it.
#pragma once

#include "commands/command_line.h"

namespace lockstep {

int plan(const Arguments& arguments);

}  // namespace lockstep
