// lockstep evaluate RUN: evaluates a run's model; BLEU comes with sacreBLEU's signature line.

#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int evaluate(const Arguments& arguments);

}  // namespace lockstep
