// `lockstep prepare`: turns raw data into a data set to train on.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int prepare(const Arguments& arguments);

}  // namespace lockstep
