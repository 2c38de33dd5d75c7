// lockstep doctor: whether the hosts of a run are fit for it, before it.
#pragma once

#include "commands/arguments.h"

namespace lockstep {

int doctor(const Arguments& arguments);

}  // namespace lockstep
