// lockstep score-pairs: computes how probable given translations are.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int score_pairs_command(const Arguments& arguments);

}  // namespace lockstep
