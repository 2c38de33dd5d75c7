// lockstep classify: the most probable classes of image files.
#pragma once

#include "commands/command_line.h"

namespace lockstep {

int classify(const Arguments& arguments);

}  // namespace lockstep
