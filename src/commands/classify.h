// lockstep classify: the most probable classes of image files.
#pragma once

#include "commands/arguments.h"

namespace lockstep {

int classify(const Arguments& arguments);

}  // namespace lockstep
