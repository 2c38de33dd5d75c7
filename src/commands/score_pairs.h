// lockstep score-pairs: how probable given translations are.
#pragma once

#include "commands/arguments.h"

namespace lockstep {

int score_pairs_command(const Arguments& arguments);

}  // namespace lockstep
