#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int files(const Arguments& arguments);  // `lockstep files`, which launch --push starts on hosts

}  // namespace lockstep
