// lockstep tensorboard: starts the user's TensorBoard on the events of runs.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

// Runs `tensorboard RUN... [--port N] [-- ARGUMENTS]`: the process becomes TensorBoard, with
// TensorBoard's exit code and signal handling.
int tensorboard(const Arguments& arguments);

}  // namespace lockstep
