// lockstep tensorboard: the user's TensorBoard on the events of runs.
#pragma once

#include "commands/command_line.h"

namespace lockstep {

// `tensorboard RUN... [--port N] [-- ARGUMENTS]`: becomes TensorBoard, whose exit code and signals
// are then its own.
int tensorboard(const Arguments& arguments);

}  // namespace lockstep
