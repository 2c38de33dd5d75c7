#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

// lockstep export RUN --format huggingface --out DIR: writes the model without the run
// (docs/export.md).
int export_model(const Arguments& arguments);

}  // namespace lockstep
