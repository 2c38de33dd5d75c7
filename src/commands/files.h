#pragma once

#include "commands/command_line.h"

namespace lockstep {

int files(const Arguments& arguments);  // `lockstep files`, which launch --push starts on hosts

}  // namespace lockstep
