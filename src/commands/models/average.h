// lockstep average RUN|CHECKPOINTS... --out FOLDER: averages the weights of several checkpoints.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int average(const Arguments& arguments);

}  // namespace lockstep
