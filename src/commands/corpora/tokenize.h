// lockstep tokenize MODEL: converts lines to ids or pieces, and back.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int tokenize(const Arguments& arguments);

}  // namespace lockstep
