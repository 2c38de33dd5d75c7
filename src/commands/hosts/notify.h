// `lockstep notify`: posts a notice; started by the launcher, for it alone.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int notify(const Arguments& arguments);

}  // namespace lockstep
