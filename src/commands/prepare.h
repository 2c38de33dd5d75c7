// `lockstep prepare`: raw text to a corpus that a translation task can train on.
#pragma once

#include "commands/command_line.h"

namespace lockstep {

int prepare(const Arguments& arguments);

}  // namespace lockstep
