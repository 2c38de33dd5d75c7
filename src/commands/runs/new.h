// `lockstep new`: writes a configuration that fits the data and the machine.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int new_run(const Arguments& arguments);

}  // namespace lockstep
