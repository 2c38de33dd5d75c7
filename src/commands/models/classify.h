// lockstep classify: prints the most probable classes of images and texts.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int classify(const Arguments& arguments);

}  // namespace lockstep
