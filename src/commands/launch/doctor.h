// lockstep doctor: checks, before a run, whether its hosts are fit for it.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int doctor(const Arguments& arguments);

}  // namespace lockstep
