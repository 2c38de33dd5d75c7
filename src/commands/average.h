// lockstep average RUN|CHECKPOINTS... --out FOLDER: the mean of several checkpoints' weights.
#pragma once

#include "commands/arguments.h"

namespace lockstep {

int average(const Arguments& arguments);

}  // namespace lockstep
