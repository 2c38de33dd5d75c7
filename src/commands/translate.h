// lockstep translate RUN: lines in, translations out.
#pragma once

#include "commands/arguments.h"

namespace lockstep {

int translate(const Arguments& arguments);

}  // namespace lockstep
