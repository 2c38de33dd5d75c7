// lockstep plan: what a run will take, before it.
#pragma once

#include "commands/arguments.h"

namespace lockstep {

int plan(const Arguments& arguments);

}  // namespace lockstep
