// `lockstep fetch`: brings the run folder of a run on hosts together here.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int fetch(const Arguments& arguments);

}  // namespace lockstep
