// lockstep doctor: whether the hosts of a run are fit for it, before it.
#pragma once

#include "commands/command_line.h"

namespace lockstep {

int doctor(const Arguments& arguments);

}  // namespace lockstep
