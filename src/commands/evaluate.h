// lockstep evaluate RUN: BLEU of a run's model, with sacreBLEU's signature line.
#pragma once

#include "commands/command_line.h"

namespace lockstep {

int evaluate(const Arguments& arguments);

}  // namespace lockstep
