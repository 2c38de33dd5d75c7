// lockstep tokenize MODEL: lines to ids or pieces, and back.
#pragma once

#include "commands/arguments.h"

namespace lockstep {

int tokenize(const Arguments& arguments);

}  // namespace lockstep
