// lockstep translate RUN: translates lines.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int translate(const Arguments& arguments);

}  // namespace lockstep
