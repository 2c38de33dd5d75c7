// lockstep score HYP REF...: computes BLEU, chrF and TER of files and prints them as sacreBLEU
// does.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int score(const Arguments& arguments);

}  // namespace lockstep
