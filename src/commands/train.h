// lockstep train CONFIG [key=value ...]: one rank of a training run.
#pragma once

#include "commands/arguments.h"

namespace lockstep {

int train(const Arguments& arguments);

}  // namespace lockstep
