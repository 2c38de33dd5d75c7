// `lockstep serve`.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int serve(const Arguments& arguments);

}  // namespace lockstep
