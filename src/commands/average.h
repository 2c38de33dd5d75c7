// lockstep average RUN|CHECKPOINTS... --out FOLDER: the mean of several checkpoints' weights.
#pragma once

#include "commands/command_line.h"

namespace lockstep {

int average(const Arguments& arguments);

}  // namespace lockstep
